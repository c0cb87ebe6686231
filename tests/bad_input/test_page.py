"""docs/bad-input.md is made from the cases in this folder.

Write it anew with: python tests/bad_input/test_page.py
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "bad-input.md"
WRITE = "SPARKLOG_WRITE_BAD_INPUT_PAGE"


def test_the_page_has_these_cases_and_no_others(table: Any, all_ran: bool) -> None:
    """Each case has compared its own line already."""
    if not all_ran:
        pytest.skip("a part of the cases cannot tell what the whole page should be")
    if WRITE in os.environ:
        PAGE.write_text(table.page())
    assert PAGE.read_text() == table.page(), "run: python tests/bad_input/test_page.py"


if __name__ == "__main__":
    os.environ[WRITE] = "1"
    sys.exit(pytest.main([str(Path(__file__).parent), "-q"]))
