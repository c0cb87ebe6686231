"""Modules of this folder import each other as ``chaos.NAME``, as they do where the command runs them."""

import sys
from pathlib import Path

_TESTS = str(Path(__file__).parents[1])
if _TESTS not in sys.path:
    sys.path.insert(0, _TESTS)
