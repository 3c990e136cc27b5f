"""``python -m greylag``, and the script ``greylag``: the command line."""

import sys

from greylag.runtime import interrupts


def main() -> None:
    """Run the command line; an interrupt while it is imported ends in one line, too."""
    interrupts.prepare()
    try:
        from greylag.cli import main as run

        run()
    except KeyboardInterrupt:
        interrupts.ignore()
        print("greylag: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
