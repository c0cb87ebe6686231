r"""A record as text, by a format such as ``{partition}\t{offset}\t{key}={value}``.

Names in braces stand for parts of the record, ``{{`` and ``}}`` for braces; ``\t``, ``\n`` and ``\\`` are as
in C. A null is ``null``; headers are ``NAME=VALUE,NAME=VALUE``; a timestamp is in milliseconds since
1970. Bytes that are no UTF-8 are shown as ``\xNN``.
"""

import argparse
import string
from typing import Final

from sparklog.cli.command import did_you_mean
from sparklog.cli.logs.record_text.lines import unescape
from sparklog.cli.logs.record_text.record import Record
from sparklog.model.ids import TopicPartition

NAMES: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
NULL: Final = "null"


class RecordFormat:
    """Raises ArgumentTypeError for what is no format, as a type of argparse."""

    def __init__(self, text: str) -> None:
        self.names: frozenset[str] = frozenset(_names(text))
        try:
            self._format = unescape(text).decode()
        except UnicodeEncodeError:
            raise argparse.ArgumentTypeError(f"{text!r} is no text in UTF-8") from None

    def line(self, topic_partition: TopicPartition, offset: int, record: Record) -> bytes:
        """The record as text, without a newline of its own."""
        parts = {
            "topic": topic_partition.topic,
            "partition": topic_partition.partition,
            "offset": offset,
            "timestamp": NULL if record.timestamp_ms is None else record.timestamp_ms,
            "key": _shown(record.key),
            "value": _shown(record.value),
            "headers": ",".join(f"{name}={_shown(value)}" for name, value in record.headers),
        }
        return self._format.format_map(parts).encode()


def _names(text: str) -> list[str]:
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} has a single brace; write {{{{ or }}}} for a brace"
        ) from None
    names = []
    for _, name, spec, conversion in parsed:
        if name is None:
            continue
        if name not in NAMES or spec or conversion:
            wrong = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            near = did_you_mean(name, NAMES) or f"; there are {', '.join(f'{{{known}}}' for known in NAMES)}"
            raise argparse.ArgumentTypeError(f"{{{wrong}}} is no part of a record{near}")
        names.append(name)
    return names


def _shown(data: bytes | None) -> str:
    return NULL if data is None else data.decode(errors="backslashreplace")
