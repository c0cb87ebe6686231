"""What a schema may have at most: columns, levels, bytes."""

from typing import Final

from sparklog.model.errors import SchemaError

FIELDS_MAX: Final = 1_000
"""Columns and fields of structs, on all levels."""
DEPTH_MAX: Final = 32
"""Levels of a column's type; a scalar is one."""
TEXT_CHARACTERS_MAX: Final = 400_000
"""Longest text that is parsed, in either notation."""
CREATED_BYTES_MAX: Final = 100_000
"""Most bytes of the document of a new topic."""
DOCUMENT_BYTES_MAX: Final = 200_000
"""Most bytes of a document ever: it is one node of ZooKeeper."""
PATH_CHARACTERS_SHOWN_MAX: Final = 20


def check_depth(path: str, depth: int) -> None:
    """Raises SchemaError if a type at this depth is too deep."""
    if depth > DEPTH_MAX:
        shown = f"{path[:PATH_CHARACTERS_SHOWN_MAX]}…"
        raise SchemaError(f"column {shown}: types are at most {DEPTH_MAX} levels deep; take levels out")


def check_length(text: str) -> None:
    """Raises SchemaError for a text that is not worth parsing."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise SchemaError(
            f"the schema has {len(text):,} characters, at most {TEXT_CHARACTERS_MAX:,} are allowed; "
            "use fewer columns or shorter comments"
        )
