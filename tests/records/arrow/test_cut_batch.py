"""Batches with some of their columns: what is read of them, and that no damage is covered up, or passes."""

import struct

import pyarrow as pa
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow.cut_batch import (
    HEAD_BYTES_MIN,
    can_be_cut,
    cut_batch,
    cut_crc_matches,
    head_bytes,
)
from sparklog.records.arrow.cut_metadata import metadata_of_some, moved_together
from sparklog.records.arrow.header import parse_arrow_header
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.decoding import read_columns
from sparklog.records.envelope import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    CUT_BIT,
    ENVELOPE_BYTES,
    Compression,
    parse_header,
    split,
    stamp,
)
from sparklog.records.restamp import set_append_time, set_producer
from sparklog.records.typed_decoding import TypedReading
from sparklog.records.validate import Accepted
from tests.records.arrow.test_typed_payload import CODECS, produced, same, written
from tests.records.arrow.typed_strategies import tables

TOPIC = TopicColumns(
    new_schema(
        parse_ddl("id bigint NOT NULL, name string, at timestamp, mag double, `a b` array<int>"), "id", "at"
    )
)
ROWS = pa.record_batch(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["x", None, "z" * 40],
        "at": pa.array([5_000_999, None, 7], pa.timestamp("us", "UTC")),
        "mag": [0.5, None, -0.0],
        "a b": pa.array([[1], None, [2, 3]], pa.list_(pa.int32())),
    }
)


def stored(codec: Compression = Compression.NONE) -> bytearray:
    """A batch as a log has it: with offset, epoch and producer."""
    batch = bytearray(written(ROWS, TOPIC, codec))
    set_producer(batch, 0, producer_id=7, producer_epoch=1, base_sequence=0, is_transactional=True)
    stamp(batch, 0, 70, 4)
    return batch


def cut(batch: bytes | bytearray, *wanted: int) -> bytes:
    header = parse_header(batch)
    assert can_be_cut(batch[:HEAD_BYTES_MIN], header)
    start = bytes(batch[: head_bytes(batch[:HEAD_BYTES_MIN], header)])
    found = cut_batch(start, header, wanted)
    data = found.head + b"".join(bytes(batch[one.position :][: one.length]) for one in found.stretches)
    assert len(data) == found.size_bytes == parse_header(data).size_bytes
    return data


def reading(*names: str, topic: TopicColumns = TOPIC, with_times: bool = False) -> TypedReading:
    wanted = tuple(field for name in names for field in topic.newest.columns if field.name == name)
    return TypedReading(topic, wanted, with_times=with_times)


def read(data: bytes | bytearray, how: TypedReading) -> list[dict[str, object]]:
    """As a reader does: what follows itself, then envelope and header, then metadata and columns."""
    batches = split(data)
    if [position for position, _ in batches] != [0] or batches[0][1].size_bytes != len(data):
        raise CorruptBatch("the batch is not as long as it says")
    if not cut_crc_matches(data, batches[0][1]):
        raise CorruptBatch("envelope or header are not as they were sent")
    return [row for rows in how.read(data, batches) for row in rows.to_pylist()]


@settings(deadline=None, max_examples=80)
@given(drawn=tables(), codec=st.sampled_from(CODECS), choice=st.sets(st.integers(0, 3)))
def test_columns_of_a_cut_batch_are_those_of_the_whole_one(drawn, codec: Compression, choice: set[int]):
    topic, rows = drawn
    batch = written(rows, topic, codec)
    how = TypedReading(topic, tuple(topic.newest.columns[nth] for nth in choice if nth < rows.num_columns))
    data = cut(batch, *how.column_ids)
    (whole,) = how.read(batch, [(0, parse_header(batch))])
    (found,) = how.read(data, [(0, parse_header(data))])
    assert cut_crc_matches(data, parse_header(data))
    assert found.schema == whole.schema
    for name in whole.schema.names:
        assert same(found.column(name), whole.column(name))


@pytest.mark.parametrize("codec", CODECS)
def test_a_cut_batch_has_the_head_and_the_wanted_columns_alone(codec: Compression):
    batch = stored(codec)
    header, ours = parse_header(batch), parse_arrow_header(memoryview(batch)[ENVELOPE_BYTES:])
    head = head_bytes(batch, header)
    lengths = {entry.column_id: entry.length for entry in ours.columns}
    assert len(cut(batch)) == head
    assert len(cut(batch, 2, 5)) == head + lengths[2] + lengths[5]
    assert [found.length for found in cut_batch(batch, header, {1, 2, 4}).stretches] == [
        lengths[1] + lengths[2],
        lengths[4],
    ]
    assert len(cut(batch, 1, 2, 3, 4, 5)) == len(batch)
    assert len(cut(batch, 900)) == head
    own = parse_header(cut(batch, 4))
    assert (own.is_cut, own.is_arrow, own.is_transactional, own.producer_id) == (True, True, True, 7)
    assert (own.base_offset, own.next_offset, own.leader_epoch) == (70, 73, 4)
    assert isinstance(produced(written(ROWS, TOPIC, codec), TOPIC), Accepted)


def test_a_count_takes_no_column_and_times_take_theirs():
    assert read(cut(stored()), reading()) == [{"_offset": 70 + nth} for nth in range(3)]
    how = reading("mag", with_times=True)
    assert how.named_ids == (3, 4)
    assert [row["_timestamp"].timestamp() for row in read(cut(stored(), 3, 4), how)] == [
        5.0,
        parse_header(stored()).base_timestamp_ms / 1_000,
        0.0,
    ]
    assert reading(*ROWS.schema.names).named_ids is None, "all columns are wanted, so batches go whole"


def test_a_batch_that_was_stamped_again_can_be_cut():
    batch = stored()
    set_append_time(batch, 0, 9_000)
    (row, *_) = read(cut(batch, 4), reading("mag"))
    assert row == {"mag": 0.5, "_offset": 70}
    times = [row["_timestamp"].timestamp() for row in read(cut(batch, 3), reading(with_times=True))]
    assert times == [9.0] * 3


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
@pytest.mark.parametrize("with_times", [False, True])
def test_a_flipped_byte_anywhere_is_noticed(codec: Compression, with_times: bool):
    how = reading("mag", "name", with_times=with_times)
    data = cut(stored(codec), *how.column_ids)
    assert len(read(data, how)) == 3
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 0xFF
        with pytest.raises(CorruptBatch):
            read(flipped, how)


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80])
def test_a_flipped_bit_of_the_head_is_noticed(mask: int):
    data = cut(stored())
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= mask
        with pytest.raises(CorruptBatch):
            read(flipped, reading())


def test_no_new_crc_is_made_over_a_damaged_envelope_or_header():
    """But base offset, length, epoch and CRC, which the header does not know."""
    whole = stored()
    start = bytes(whole[: head_bytes(whole, parse_header(whole))])
    header_end = ENVELOPE_BYTES + parse_arrow_header(whole[ENVELOPE_BYTES:]).header_length
    for position in range(21, header_end):
        damaged = bytearray(start)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptBatch):
            cut_batch(damaged, parse_header(damaged), {4})


def test_a_damaged_column_is_named_and_others_are_read():
    batch = stored()
    entry = parse_arrow_header(batch[ENVELOPE_BYTES:]).columns[4]
    batch[head_bytes(batch, parse_header(batch)) + entry.offset + 3] ^= 1
    assert read(cut(batch, 4), reading("mag"))[0]["mag"] == 0.5
    with pytest.raises(
        CorruptBatch, match=r"the batch at offset 70, column `a b`: the CRC 0x[0-9a-f]+ of column 5"
    ):
        read(cut(batch, 4, 5), reading("mag", "a b"))


def test_the_columns_of_a_neighbour_are_noticed():
    own, other = cut(stored(), 2), cut(stored(), 4)
    with pytest.raises(CorruptBatch, match=r"a batch with columns \[4\] has \d+ bytes of them, not \d+"):
        read(own, reading("mag"))
    head = len(cut(stored()))
    exchanged = other[:head] + own[head:][: len(other) - head]
    assert len(exchanged) == len(other)
    with pytest.raises(CorruptBatch, match="the batch at offset 70, column mag: the CRC"):
        read(exchanged, reading("mag"))


@pytest.mark.parametrize("length", [61, HEAD_BYTES_MIN - 1])
def test_short_and_other_batches_are_not_cut(length: int):
    batch = stored()
    assert not can_be_cut(batch[:length], parse_header(batch))
    records = parse_header(batch)._replace(attributes=0)
    assert not can_be_cut(batch, records)
    batch[ENVELOPE_BYTES + 1] = 1
    assert not can_be_cut(batch, parse_header(batch))
    assert not cut_crc_matches(batch[:length], parse_header(batch))


def test_lengths_beyond_the_batch_are_refused():
    batch = stored()
    struct.pack_into("<I", batch, ENVELOPE_BYTES + 4, 1 << 31)
    with pytest.raises(CorruptBatch, match=r"claims that its columns begin at 2147\d+"):
        head_bytes(batch, parse_header(batch))
    whole = stored()
    longer = parse_header(whole)._replace(length=parse_header(whole).length + 8)
    with pytest.raises(CorruptBatch, match=r"a batch of \d+ bytes has \d+ of columns at \d+"):
        cut_batch(whole, longer, {1})


def test_columns_that_share_buffers_are_refused():
    batch = stored()
    ours = parse_arrow_header(batch[ENVELOPE_BYTES:])
    metadata = batch[ENVELOPE_BYTES + ours.header_length :][: ours.metadata_length]
    twice = [*ours.columns, *ours.columns]
    with pytest.raises(CorruptBatch, match="share nodes or buffers"):
        metadata_of_some(metadata, list(zip(twice, moved_together(twice), strict=True)), 8)
    with pytest.raises(CorruptBatch, match="are malformed"):
        metadata_of_some(metadata[:20], [], 0)


def test_no_producer_may_send_one_and_readers_without_columns_refuse_it():
    batch = stored()
    batch[ATTRIBUTES_POSITION] |= CUT_BIT >> 8
    struct.pack_into(">I", batch, CRC_POSITION, crc32c(batch[ATTRIBUTES_POSITION:]))
    assert "attributes 0x6010 have unknown bits" in produced(batch).message
    data = cut(stored(), 1)
    with pytest.raises(CorruptBatch, match="these are rows of a typed topic"):
        list(read_columns(data, split(data)))
