"""``python -m tests.robustness SECONDS [SEED]``: try malformed files, then faults of the machine, with new seeds."""

import sys
import tempfile
import time
from pathlib import Path

from tests.robustness import machine
from tests.robustness.harness import fuzz

if __name__ == "__main__":
    budget = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    first = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    with tempfile.TemporaryDirectory() as scratch:
        wrong = fuzz(budget / 2, Path(scratch), first)
    faults = machine.run(budget / 2, first)
    print(faults)
    sys.exit(wrong > 0 or bool(faults.wrong))
