"""Run the benchmarks: ``python -m benchmarks [TOPIC ...]``; a table on the terminal, JSON in runs/bench.json.

With FULL=1 in the environment, at the sizes of large collections, which takes hours.
"""

import json
import platform
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from benchmarks.harness import DATA, Row

TOPICS = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "__main__", "generated", "growth", "harness")
)


def main() -> None:
    """Run the topics that are named, or all."""
    if not DATA.is_dir():
        sys.exit(f"the benchmarks need the collections, which are not in {DATA}: set GREYLAG_DATA")
    unknown = set(sys.argv[1:]) - set(TOPICS)
    if unknown:
        sys.exit(f"unknown topics {', '.join(sorted(unknown))}: there are {', '.join(TOPICS)}")
    found: list[Row] = []
    for topic in sys.argv[1:] or TOPICS:
        print(f"\n{topic}")
        start = time.perf_counter()
        for row in import_module(f"benchmarks.{topic}").rows():
            print(f"  {row.value:12.4g} {row.unit:18} {row.name}{f'  (aim: {row.aim})' if row.aim else ''}", flush=True)
            found.append(row)
        print(f"  {time.perf_counter() - start:12.4g} s                  in all")
    machine = {"python": platform.python_version(), "processor": platform.processor() or platform.machine()}
    out = Path("runs/bench.json")
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({**machine, "rows": [asdict(row) for row in found]}, indent=1) + "\n")
    print(f"\nwritten to {out}")


if __name__ == "__main__":
    main()
