"""Typed rows as Kafka's clients see them: an object of JSON each, with the topic's present names."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from chaos.typed.columns import KEY
from histories.typed.cells import text_of_json
from histories.typed.columns import TopicColumns

NO_NAME: Final = "a typed row without its name"


class JsonRows:
    """Decodes values by the newest columns, which have to stay while rows are read."""

    def __init__(self, columns: TopicColumns) -> None:
        there = columns.at(columns.version).values()
        self._by_name = {column.name: column for column in there}
        self.ids = sorted(column.id for column in there if column.name != KEY)

    def row(self, key: bytes | None, value: bytes | None) -> tuple[str, Mapping[int, str]]:
        """The row's name and cells. A value that is none, or whose key is another, gets a name that nobody
        has sent.
        """
        try:
            found = json.loads(value or b"", parse_float=Decimal)
            name = found.pop(KEY)
            cells = {
                self._by_name[column].id: text_of_json(self._by_name[column].kind, held)
                for column, held in found.items()
            }
        except (ValueError, KeyError, AttributeError, TypeError, ArithmeticError) as error:
            return f"{NO_NAME}: {error!r} of {value!r}"[:1_000], {}
        if key != str(name).encode():
            return f"{name} under the key {key!r}", cells
        return str(name), cells
