"""The condition of a read, by option ``where``: which rows of typed topics it has."""

from typing import Final

from sparklog.model.errors import ConfigError, SchemaError
from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.model.schema.predicates.tree import Condition

WHERE: Final = "where"
_SHOWN_MAX: Final = 80


def condition_of(text: str, columns: Columns, topic: str) -> Condition | None:
    """The condition on the rows of a topic; None for an empty text. ConfigError for one that does not go with
    its columns.
    """
    if not text:
        return None
    try:
        return parse_condition(text, columns)
    except SchemaError as error:
        shown = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
        raise ConfigError(f"option {WHERE}={shown!r}, topic {topic!r}: {error}") from None
