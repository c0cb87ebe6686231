"""docs/write-your-own-shell.md: its shell runs as it stands there, and prints what the page says."""

import subprocess
import sys

from tests.pages import DOCS, blocks_of

PAGE = DOCS / "write-your-own-shell.md"


def test_the_shell_of_the_page_prints_what_the_page_says() -> None:
    program, printed = blocks_of(PAGE)
    assert (program.kind, printed.kind) == ("python", "text")
    done = subprocess.run(
        [sys.executable, "-c", program.text], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == printed.text, done.stderr
