"""``python -m greylag``, and the script ``greylag``: the command line."""

import gc
import sys

from greylag.base import handle_interrupts, ignore_interrupts

COLLECTED = 500_000
"""New objects after which Python looks for cycles: more than a short command makes, nearly all of which stay."""


def main() -> None:
    """Run the command line; an interrupt while it is imported ends in one line, too."""
    handle_interrupts()
    gc.set_threshold(COLLECTED)
    try:
        from greylag.cli import main as run

        run()
    except KeyboardInterrupt:
        ignore_interrupts()
        print("greylag: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        gc.freeze()  # else Python looks through all objects for cycles as it exits: a quarter of a short command's time


if __name__ == "__main__":
    main()
