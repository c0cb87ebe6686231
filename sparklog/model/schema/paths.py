"""Names and paths of columns in texts: ``s.a``, ``a.element.b``; other names than words in backticks."""

import re
from typing import Final

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(name: str) -> str:
    """The name as DDL and paths have it."""
    return name if _WORD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def joined(parent: str, name: str) -> str:
    """The path of what is named ``name`` within ``parent``, which is empty for a column."""
    return f"{parent}.{quoted(name)}" if parent else quoted(name)
