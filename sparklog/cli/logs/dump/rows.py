"""The rows of a dump: as Kafka's text, and as JSON with the same names in snake case."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sparklog.cli.logs.dump.decoded import DecodedRecord
from sparklog.records.envelope import DELETE_HORIZON_BIT, SEQUENCE_MODULUS, BatchHeader, Compression
from sparklog.storage.inspection.inspect_index import AbortedTransaction, OffsetEntry, TimeEntry
from sparklog.storage.inspection.inspect_log import FoundBatch
from sparklog.storage.inspection.inspect_snapshot import SnapshotProducer
from sparklog.wire.coordinator_records.record_codec import UnreadableRecord

RECORD_INDENT: Final = "|"
COLUMN_INDENT: Final = "+"


class Row(Protocol):
    """One line of the dump."""

    def text(self) -> str: ...

    def data(self) -> dict[str, Any]: ...


def truth(value: bool) -> str:
    return "true" if value else "false"


def as_text(data: bytes) -> str:
    """``data`` as UTF-8, with U+FFFD for invalid bytes, as in Kafka's StringDecoder."""
    return data.decode("utf-8", "replace")


def content(name: str, data: bytes | None) -> dict[str, Any]:
    """Bytes for JSON: as text, and also in base64 if the bytes are not valid UTF-8."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {name: as_text(data), f"{name}_base64": base64.b64encode(data).decode("ascii")}


def timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


@dataclass(frozen=True, slots=True)
class BatchRow:
    """The envelope of a batch."""

    found: FoundBatch

    def text(self) -> str:
        header = self.found.header
        horizon = self.delete_horizon_ms
        text = (
            f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count} "
            f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
            f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
            f"partitionLeaderEpoch: {header.leader_epoch} isTransactional: {truth(header.is_transactional)} "
            f"isControl: {truth(header.is_control)} "
            f"deleteHorizonMs: {'OptionalLong.empty' if horizon is None else f'OptionalLong[{horizon}]'} "
            f"position: {self.found.position} {timestamp_type(header)}: {header.max_timestamp_ms} "
            f"size: {header.size_bytes} magic: {header.magic} compresscodec: {codec_name(header)} "
            f"crc: {header.crc} isvalid: {truth(self.found.crc_holds)}"
        )
        return f"{text} payload: arrow" if header.is_arrow else text

    def data(self) -> dict[str, Any]:
        header = self.found.header
        return {
            "base_offset": header.base_offset,
            "last_offset": header.last_offset,
            "count": header.record_count,
            "base_sequence": header.base_sequence,
            "last_sequence": header.last_sequence,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "partition_leader_epoch": header.leader_epoch,
            "is_transactional": header.is_transactional,
            "is_control": header.is_control,
            "delete_horizon_ms": self.delete_horizon_ms,
            "position": self.found.position,
            "timestamp_type": timestamp_type(header),
            "max_timestamp": header.max_timestamp_ms,
            "size": header.size_bytes,
            "magic": header.magic,
            "compresscodec": codec_name(header),
            "crc": header.crc,
            "isvalid": self.found.crc_holds,
            "payload": "arrow" if header.is_arrow else "records",
        }

    @property
    def delete_horizon_ms(self) -> int | None:
        """The delete horizon, which compaction stores in the base timestamp."""
        header = self.found.header
        return header.base_timestamp_ms if header.attributes & DELETE_HORIZON_BIT else None


def codec_name(header: BatchHeader) -> str:
    code = header.attributes & 0b111
    return Compression(code).name.lower() if code <= Compression.ZSTD else f"unknown({code})"


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One record. ``shows_metadata`` and ``shows_content`` are what the options ask for."""

    header: BatchHeader
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    header_keys: Sequence[str]
    control: str
    """The content of a control record; empty for other records."""
    shows_metadata: bool
    shows_content: bool
    decoded: DecodedRecord | UnreadableRecord | None = None
    """Key and value of a record of an internal topic; None if the dump shows them as they are."""

    @property
    def sequence(self) -> int:
        header = self.header
        if header.base_sequence < 0:
            return -1
        return (header.base_sequence + self.offset - header.base_offset) % SEQUENCE_MODULUS

    def text(self) -> str:
        """Kafka's text to the letter: a record without metadata is indented only if it has a key."""
        text, prefix = "", f"{RECORD_INDENT} "
        if self.shows_metadata:
            text = (
                f"{prefix}offset: {self.offset} {timestamp_type(self.header)}: {self.timestamp_ms} "
                f"keySize: {_size(self.key)} valueSize: {_size(self.value)} sequence: {self.sequence} "
                f"headerKeys: [{','.join(self.header_keys)}]{self.control}"
            )
            prefix = " "
        if self.shows_content and not self.header.is_control:
            text += self._content(prefix)
        return text

    def _content(self, prefix: str) -> str:
        match self.decoded:
            case DecodedRecord() as decoded:
                return f"{prefix}key: {decoded.key_text} payload: {decoded.value_text}"
            case UnreadableRecord(kind):
                return f"{prefix}key: Error at offset {self.offset}, skipping. {kind}"
        text = "" if self.key is None else f"{prefix}key: {as_text(self.key)}"
        return text if self.value is None else f"{text} payload: {as_text(self.value)}"

    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = {}
        if self.shows_metadata:
            data = {
                "offset": self.offset,
                "timestamp_type": timestamp_type(self.header),
                "timestamp": self.timestamp_ms,
                "key_size": _size(self.key),
                "value_size": _size(self.value),
                "sequence": self.sequence,
                "header_keys": list(self.header_keys),
            }
            if self.control:
                data["control"] = self.control.strip()
        if self.shows_content and not self.header.is_control:
            data |= self._content_data()
        return data

    def _content_data(self) -> dict[str, Any]:
        if isinstance(self.decoded, DecodedRecord):
            return {"key": self.decoded.key, "payload": self.decoded.value}
        shown = content("key", self.key) | content("payload", self.value)
        return shown if self.decoded is None else shown | {"undecoded": self.decoded.kind}


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


@dataclass(frozen=True, slots=True)
class OffsetRow:
    entry: OffsetEntry

    def text(self) -> str:
        return f"offset: {self.entry.offset} position: {self.entry.position}"

    def data(self) -> dict[str, Any]:
        return {"offset": self.entry.offset, "position": self.entry.position}


@dataclass(frozen=True, slots=True)
class TimeRow:
    entry: TimeEntry

    def text(self) -> str:
        return f"timestamp: {self.entry.timestamp_ms} offset: {self.entry.offset}"

    def data(self) -> dict[str, Any]:
        return {"timestamp": self.entry.timestamp_ms, "offset": self.entry.offset}


@dataclass(frozen=True, slots=True)
class AbortedRow:
    entry: AbortedTransaction

    def text(self) -> str:
        entry = self.entry
        return (
            f"version: {entry.version} producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        )

    def data(self) -> dict[str, Any]:
        return dict(self.entry._asdict())


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """A producer with its last batch, as Kafka shows it, preceded by the batches that we keep."""

    producer: SnapshotProducer

    def text(self) -> str:
        producer = self.producer
        text = (
            f"producerId: {producer.producer_id} producerEpoch: {producer.epoch} "
            f"coordinatorEpoch: {producer.coordinator_epoch} currentTxnFirstOffset: "
            f"{'OptionalLong.empty' if producer.open_since < 0 else f'OptionalLong[{producer.open_since}]'} "
            f"lastTimestamp: {producer.last_timestamp_ms} "
        )
        if producer.batches:
            last = producer.batches[-1]
            text += (
                f"firstSequence: {last.first_sequence} lastSequence: {last.last_sequence} "
                f"lastOffset: {last.last_offset} offsetDelta: {last.last_offset - last.first_offset} "
                f"timestamp: {last.timestamp_ms}"
            )
        if producer.last_seen_ms is not None:
            text = f"{text.rstrip()} lastSeenMs: {producer.last_seen_ms}"
        earlier = (
            f"\n{RECORD_INDENT} earlier batch: firstSequence: {batch.first_sequence} "
            f"lastSequence: {batch.last_sequence} lastOffset: {batch.last_offset} "
            f"offsetDelta: {batch.last_offset - batch.first_offset} timestamp: {batch.timestamp_ms}"
            for batch in producer.batches[:-1]
        )
        return text + "".join(earlier)

    def data(self) -> dict[str, Any]:
        producer = self.producer
        return {
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "current_txn_first_offset": None if producer.open_since < 0 else producer.open_since,
            "last_timestamp": producer.last_timestamp_ms,
            "last_seen_ms": producer.last_seen_ms,
            "batches": [
                {
                    "first_sequence": batch.first_sequence,
                    "last_sequence": batch.last_sequence,
                    "last_offset": batch.last_offset,
                    "offset_delta": batch.last_offset - batch.first_offset,
                    "timestamp": batch.timestamp_ms,
                }
                for batch in producer.batches
            ],
        }


@dataclass(frozen=True, slots=True)
class FieldsRow:
    """A line of a text file, as its names and values."""

    fields: Mapping[str, Any]

    def text(self) -> str:
        return " ".join(f"{name}: {value}" for name, value in self.fields.items())

    def data(self) -> dict[str, Any]:
        return {_snake(name): value for name, value in self.fields.items()}


def _snake(name: str) -> str:
    spread = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return spread.replace(".", "_")
