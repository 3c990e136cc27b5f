"""``python -m greylag``: the command line."""

from greylag.cli import main

if __name__ == "__main__":
    main()
