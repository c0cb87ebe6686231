"""`make chaos`: see command.py."""

import importlib
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # where the package is; names of its modules are anybody's

if __name__ == "__main__":
    sys.exit(importlib.import_module("chaos.command").main())
