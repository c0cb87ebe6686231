"""``python -m sparklog``: the program ``sparklog``, where its script is not on the path."""

import sys

from sparklog.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
