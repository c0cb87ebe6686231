"""One record as the page shows it: where it is, its bytes up to a bound, and its topic's words for it."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sparklog.cli.logs.dump import group_records, transaction_records
from sparklog.cli.logs.dump.decoded import DecodedRecord
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

UNKNOWN_TIME: Final = -1
DECODERS: Final = {
    GROUP_OFFSETS_TOPIC: group_records.decoded,
    TRANSACTION_STATE_TOPIC: transaction_records.decoded,
}


@dataclass(frozen=True, slots=True)
class Part:
    """A key, a value or a header: ``data`` may be its beginning alone, ``size`` is that of all."""

    data: bytes
    size: int

    def cut(self, bytes_max: int) -> "Part":
        return Part(self.data[:bytes_max], self.size)

    def as_json(self) -> dict[str, object]:
        return {"size": self.size, "base64": base64.b64encode(self.data).decode("ascii")}


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets ``[begin, end)`` that have no record for readers, and why."""

    partition: int
    begin: int
    end: int
    reason: str

    def covers(self, offset: int) -> bool:
        return self.begin <= offset < self.end

    def as_json(self) -> dict[str, object]:
        return {"partition": self.partition, "begin": self.begin, "end": self.end, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A null is None."""

    partition: int
    offset: int
    timestamp_ms: int
    key: Part | None = None
    value: Part | None = None
    headers: tuple[tuple[str, Part | None], ...] = ()

    def cut(self, bytes_max: int) -> "ShownRecord":
        """With no more than so many bytes of each part."""
        return replace(
            self,
            key=None if self.key is None else self.key.cut(bytes_max),
            value=None if self.value is None else self.value.cut(bytes_max),
            headers=tuple(
                (name, None if part is None else part.cut(bytes_max)) for name, part in self.headers
            ),
        )

    def as_json(self, topic: str) -> dict[str, object]:
        return {
            "partition": self.partition,
            "offset": self.offset,
            "timestamp_ms": None if self.timestamp_ms == UNKNOWN_TIME else self.timestamp_ms,
            "key": None if self.key is None else self.key.as_json(),
            "value": None if self.value is None else self.value.as_json(),
            "headers": [
                {"key": name, "value": None if part is None else part.as_json()}
                for name, part in self.headers
            ],
            "decoded": self._decoded(topic),
        }

    def _decoded(self, topic: str) -> dict[str, str] | None:
        """A record of an internal topic in the words of ``dump-log``; None of any other, or if unreadable."""
        decode = DECODERS.get(topic)
        if decode is None or not (_is_whole(self.key) and _is_whole(self.value)):
            return None
        found = decode(_data(self.key), _data(self.value))
        if not isinstance(found, DecodedRecord):
            return None
        return {"key": found.key_text, "value": found.value_text}


@dataclass(frozen=True, slots=True)
class Text:
    """What is looked for, as bytes of UTF-8; letters of ASCII match in either case. Empty: every record."""

    wanted: bytes

    def is_in(self, record: ShownRecord) -> bool:
        if not self.wanted:
            return True
        parts = [record.key, record.value, *(part for _, part in record.headers)]
        texts = [part.data for part in parts if part is not None]
        texts += [name.encode() for name, _ in record.headers]
        return any(self.wanted in text.lower() for text in texts)


def text_of(words: str) -> Text:
    return Text(words.encode("utf-8", "surrogatepass").lower())


def of_row(partition: int, timestamp_ms: int, row: Mapping[str, Any]) -> ShownRecord:
    """A row in ROW_SCHEMA, whose time is given as a number."""
    return ShownRecord(
        partition=partition,
        offset=row["offset"],
        timestamp_ms=timestamp_ms,
        key=_part(row["key"]),
        value=_part(row["value"]),
        headers=tuple((header["key"], _part(header["value"])) for header in row["headers"] or ()),
    )


def _part(data: bytes | None) -> Part | None:
    return None if data is None else Part(data, len(data))


def _data(part: Part | None) -> bytes | None:
    return None if part is None else part.data


def _is_whole(part: Part | None) -> bool:
    return part is None or len(part.data) == part.size
