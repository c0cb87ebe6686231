"""The columns that a read names, by option ``columns`` or by a schema of its own: in this order, each once.

Names are exact, and of the top level. Those that are no words stand in backticks, as in Spark.
"""

from collections.abc import Sequence
from typing import Any, Final

from sparklog.model.errors import ConfigError, SchemaError
from sparklog.model.schema.near_names import not_there
from sparklog.model.schema.paths import parse_path, path_text, quoted

COLUMNS: Final = "columns"


def named_columns(text: str) -> tuple[str, ...]:
    """The names in the option ``columns``; ConfigError for what is no list of them."""
    names: list[str] = []
    rest = text
    try:
        while True:
            path, rest = parse_path(rest)
            if len(path) > 1:
                raise ConfigError(
                    f"option {COLUMNS}={text!r}: {path_text(path)} is within column {quoted(path[0])}; name "
                    "the column, and select the field of its rows"
                )
            names += path
            rest = rest.strip()
            if not rest:
                break
            if not rest.startswith(","):
                raise ConfigError(f"option {COLUMNS}={text!r}: a comma is expected before {rest!r}")
            rest = rest[1:]
    except SchemaError:
        raise ConfigError(
            f"option {COLUMNS}={text!r}: a column is expected before {rest[:40]!r}; separate names by "
            "commas, and put those that are no words in backticks; for a count offset suffices, of a typed "
            "topic _offset"
        ) from None
    refuse_repeated(names)
    return tuple(names)


def refuse_repeated(names: Sequence[str]) -> None:
    """ConfigError for a name that is there twice."""
    twice = [quoted(name) for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ConfigError(f"the columns of a read name {', '.join(twice)} more than once; name each once")


def refuse_unknown(names: Sequence[str], there: Sequence[str], whose: str) -> None:
    """ConfigError for a name that is not ``there``, with the nearest one that is."""
    unknown = [name for name in names if name not in there]
    if unknown:
        raise ConfigError(not_there(unknown, there, whose))


def refuse_other_types(given: Any, expected: Any) -> None:
    """ConfigError for a schema of the user's with the names, and not the types, of the rows."""
    for own, field in zip(given.fields, expected.fields, strict=True):
        kind = field.dataType.simpleString()
        if own.dataType != field.dataType:
            raise ConfigError(
                f"column {quoted(own.name)} is {own.dataType.simpleString()} by the schema of the read, and "
                f"{kind} in its rows: give it this type, and cast it afterwards; or load again, if it has "
                "changed since"
            )
        if not own.nullable:
            raise ConfigError(
                f"column {quoted(own.name)} is NOT NULL by the schema of the read, and all columns of a read "
                "may be null: leave NOT NULL out"
            )
