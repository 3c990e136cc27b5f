"""``python -m tests.robustness SECONDS [SEED]``: try malformed files with new seeds."""

import sys
import tempfile
import time
from pathlib import Path

from tests.robustness.harness import fuzz

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    first = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(fuzz(seconds, Path(scratch), first) > 0)
