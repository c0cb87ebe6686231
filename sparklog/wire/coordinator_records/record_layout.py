"""Fields of coordinators' records: how they are written, and how each version has them when read.

Records are written in the layout before flexible versions. They are read in flexible versions too, because a
later release of Kafka may have written them (KIP-915).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sparklog.wire.primitives import (
    Cursor,
    Reader,
    Writer,
    append_int16_length,
    append_int32_length,
    array_reader,
    bytes_reader,
    bytes_writer,
    number_reader,
    number_writer,
    read_compact_length,
    read_int16_length,
    read_int32_length,
    skip_tags,
    string_reader,
    string_writer,
)

VERSION_BYTES: Final = 2

read_int32: Final = number_reader("i")
read_int64: Final = number_reader("q")
write_int16: Final = number_writer("h")
write_int32: Final = number_writer("i")
write_int64: Final = number_writer("q")
write_string: Final = string_writer(append_int16_length, nullable=False)
write_nullable_string: Final = string_writer(append_int16_length, nullable=True)
write_bytes: Final[Writer] = bytes_writer(append_int32_length, nullable=False)


@dataclass(frozen=True, slots=True)
class Layout:
    """How strings, bytes, arrays and the end of an entity are read."""

    string: Reader
    nullable_string: Reader
    bytes_: Callable[[Cursor], memoryview]
    array_length: Callable[[Cursor], int]
    end: Callable[[Cursor], None]

    def array(self, read_item: Reader, item_bytes_min: int) -> Callable[[Cursor], list[Any]]:
        """``item_bytes_min``: the fewest bytes of an item, which bound the count before memory is taken."""
        return array_reader(self.array_length, read_item, item_bytes_min, nullable=False, entities=True)


def _layout(
    read_string_length: Callable[[Cursor], int],
    read_length: Callable[[Cursor], int],
    end: Callable[[Cursor], None],
) -> Layout:
    return Layout(
        string=string_reader(read_string_length, nullable=False),
        nullable_string=string_reader(read_string_length, nullable=True),
        bytes_=bytes_reader(read_length, nullable=False),
        array_length=read_length,
        end=end,
    )


PLAIN: Final = _layout(read_int16_length, read_int32_length, lambda _: None)
FLEXIBLE: Final = _layout(read_compact_length, read_compact_length, skip_tags)
