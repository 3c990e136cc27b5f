"""The prose of reports, which is in a file ``texts.md`` beside the studies."""

from __future__ import annotations

import re
from pathlib import Path


def read_texts(module: str) -> dict[str, str]:
    """Read the texts beside a module's file, each under its heading ``# NAME``."""
    parts = re.split(r"^# (.+)$", Path(module).with_name("texts.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))
