"""`python -m mainspring.cli`, the same as `mainspring`."""

from mainspring.cli import main

if __name__ == "__main__":
    main()
