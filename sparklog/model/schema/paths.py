"""Names and paths of columns in texts, as in Spark's ALTER TABLE: ``s.a``, ``a.element.b``, ``m.value.b``.

Names that are no words stand in backticks, in which a backtick is doubled.
"""

import re
from typing import Final

from sparklog.model.errors import SchemaError

Path = tuple[str, ...]
"""A column's name, then the names of fields, ``element`` or ``value`` on the way to what is meant."""

_PART: Final = re.compile(r"([A-Za-z0-9_]+)|`((?:[^`]|``)+)`")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(name: str) -> str:
    """The name as DDL and paths have it."""
    return name if _WORD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def joined(parent: str, name: str) -> str:
    """The path of what is named ``name`` within ``parent``, which is empty for a column."""
    return f"{parent}.{quoted(name)}" if parent else quoted(name)


def path_text(path: Path) -> str:
    """The path as ``parse_path`` reads it."""
    return ".".join(quoted(name) for name in path)


def parse_path(text: str) -> tuple[Path, str]:
    """The path at the beginning of ``text``, and what follows it. SchemaError if there is none."""
    names: list[str] = []
    position = len(text) - len(text.lstrip())
    while part := _PART.match(text, position):
        names.append(part.group(1) or part.group(2).replace("``", "`"))
        position = part.end()
        if not text.startswith(".", position):
            return tuple(names), text[position:]
        position += 1
    raise SchemaError(
        f"{text[:100]!r} is no column: at character {position + 1} a name is expected; write s.a for a "
        "field, a.element.b within an array, and names that are no words in `backticks`"
    )
