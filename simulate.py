"""`python -m simulate`: the deterministic simulator; see `tests/proof/simulation`."""

import sys

from tests.proof.simulation.__main__ import arguments, main

if __name__ == "__main__":
    sys.exit(main(arguments().parse_args()))
