"""``python -m greylag``, and the script ``greylag``: the command line."""

import sys


def main() -> None:
    """Run the command line; an interrupt while it is imported ends in one line, too."""
    try:
        from greylag.cli import main as run

        run()
    except KeyboardInterrupt:
        print("greylag: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
