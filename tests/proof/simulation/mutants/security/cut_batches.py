"""Bugs of batches that are cut to the columns that a reader wants, each with the check that finds it.

Seeds cannot: a batch is cut at its reader's broker, from bytes that no simulated disk damages so finely.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import pyarrow as pa

from simulation.mutants.mutant import Switch
from simulation.mutants.security.checked_mutant import CheckedMutant
from sparklog.client.fetched import Fetched
from sparklog.model.errors import CorruptBatch
from sparklog.model.ids import TopicPartition
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow import cut_batch as cutting
from sparklog.records.arrow.header import ColumnEntry, parse_arrow_header
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.typed_payload import typed_batch
from sparklog.records.envelope import ENVELOPE_BYTES, Bytes, parse_header, split
from sparklog.records.restamp import set_producer
from sparklog.records.typed_decoding import TypedReading
from sparklog.wire.messages.data.fetch import AbortedTransaction

_TOPIC: Final = TopicColumns(new_schema(parse_ddl("id bigint, mag bigint, size bigint")))
_WANTED: Final = TypedReading(_TOPIC, _TOPIC.newest.columns[1:2], with_times=False)
_PRODUCER: Final = 7
_OF_AN_ABORTED_ONE: Final = 5
_PRODUCER_ID_END: Final = 50
"""The last byte of the producer's id in an envelope."""


def _stored() -> bytearray:
    columns = {number: pa.array([number * 10 + row for row in range(3)]) for number in (1, 2, 3)}
    batch = bytearray(typed_batch(columns, 3, _TOPIC.newest, now_ms=1_000))
    set_producer(batch, 0, _PRODUCER, 0, 0, is_transactional=True)
    return batch


def _read(batch: bytearray) -> list[int]:
    """What a read-committed reader gets of column ``mag``; producer 5 has an aborted transaction."""
    found = cutting.cut_batch(bytes(batch), parse_header(batch), _WANTED.column_ids)
    data = found.head + b"".join(bytes(batch[at : at + length]) for at, length in found.stretches)
    aborted = [AbortedTransaction(producer_id=_OF_AN_ABORTED_ONE, first_offset=0)]
    place = TopicPartition("t", 0)
    rows = Fetched(place, 0, data, split(data), aborted, typed=_WANTED).rows()
    return [value for some in rows for value in some.column("mag").to_pylist()]


def _send_the_neighbour(switch: Switch) -> None:
    """A replica takes each region from where the next column's begins."""

    def make(joined: Any) -> Any:
        def shifted(columns: Sequence[ColumnEntry], wanted: Collection[int], position: int) -> Any:
            return joined(columns, wanted, position + columns[0].length)

        return shifted

    switch.method(cutting, "_joined", make)


def _check_regions() -> None:
    try:
        found = _read(_stored())
    except CorruptBatch as error:
        raise AssertionError("an intact batch cannot be read") from error
    assert found == [20, 21, 22]


def _compare_no_envelope(switch: Switch) -> None:
    """A replica makes the new CRC without a look at the one of the stored envelope."""

    def as_the_header_says(batch: Bytes) -> int:
        return parse_arrow_header(memoryview(batch)[ENVELOPE_BYTES:], is_partial=True).envelope_crc

    switch.instead(cutting, "envelope_crc", as_the_header_says)


def _check_envelopes() -> None:
    """With a bit flipped the batch seems to be the aborted producer's, whose rows nobody looks at."""
    batch = _stored()
    assert batch[_PRODUCER_ID_END] == _PRODUCER
    batch[_PRODUCER_ID_END] = _OF_AN_ABORTED_ONE
    try:
        found = _read(batch)
    except CorruptBatch:
        return
    raise AssertionError(f"a damaged batch reads as {found}, without a word")


CUT_BATCHES: Final = (
    CheckedMutant(
        "neighbours-region-is-sent",
        "a directory that is off by one",
        "a reader gets the bytes of another column than the one that it named",
        _send_the_neighbour,
        _check_regions,
    ),
    CheckedMutant(
        "envelope-crc-is-not-compared",
        "a new CRC over old damage",
        "a batch with a flipped bit counts as an aborted transaction's, and its rows vanish",
        _compare_no_envelope,
        _check_envelopes,
    ),
)
