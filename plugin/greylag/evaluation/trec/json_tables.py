"""Tables in JSON, ``{qid: {docid: value}}``, in which ranx, BEIR and MTEB keep runs and judgements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from greylag.base import FormatError, parse_json

_KEY = rb'"(?:[^"\\]|\\.)*+"\s*:\s*'
_OF_GATE = rb'(?!\s*\{\s*"gate"\s*:\s*\{\s*"passed"\s*:\s*[tf])'  # an evaluation's JSON may begin with its gate
_START = re.compile(_OF_GATE + rb"\s*\{\s*" + _KEY + rb"\{\s*(?:" + _KEY + rb'[^{"\s]|\})')


def is_table(head: bytes) -> bool:
    """Return whether a text begins an object of objects, whose first value is neither an object nor a text."""
    return _START.match(head) is not None


def read_table(blocks: Iterable[bytes], path: str | Path) -> dict[str, dict[str, Any]]:
    """Read values by qid and docid; `FormatError` if the text is something else, or has a key twice."""
    try:
        table = parse_json(b"".join(blocks))
    except json.JSONDecodeError as error:
        raise FormatError(path, error.lineno, f"not a JSON object: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:  # a key twice, a huge number, deep nesting
        raise FormatError(path, None, f"not a JSON object: {error}") from None
    for qid, by_docid in table.items():
        if not isinstance(by_docid, dict):
            reason = f"query {qid!r} has a {type(by_docid).__name__}, and no values by docid: {{qid: {{docid: value}}}}"
            raise FormatError(path, None, reason)
        for name in (qid, *by_docid):
            if not name.isascii() and name.encode(errors="replace") != name.encode(errors="surrogatepass"):
                raise FormatError(path, None, f"the identifier {name!r} is not Unicode; rename it")
    return table  # type: ignore[no-any-return]
