"""Rows become batches of reasonable size, in their order, and none that a topic would refuse."""

import pyarrow as pa
import pytest

from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.records.envelope import Compression, parse_header
from sparklog.records.payload import payload_of
from sparklog_datasource.writing import batching
from sparklog_datasource.writing.batching import BATCH_OVERHEAD_BYTES, Batching, UntypedEncoding
from sparklog_datasource.writing.row_sizes import row_sizes

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MIB = 1024 * 1024


class Sent:
    """Takes what is sent, and reads it back."""

    def __init__(self) -> None:
        self.batches: list[tuple[TopicPartition, bytes]] = []

    def __call__(self, tp: TopicPartition, batch: bytes) -> None:
        self.batches.append((tp, batch))

    def values(self, tp: TopicPartition) -> list[bytes]:
        found: list[bytes] = []
        for to, batch in self.batches:
            header = parse_header(batch)
            assert len(batch) == header.size_bytes
            if to == tp:
                found += payload_of(header).to_columns(batch, header).column("value").to_pylist()
        return found


def rows(*values: bytes) -> pa.RecordBatch:
    count = len(values)
    return pa.record_batch(
        {"key": pa.nulls(count), "value": pa.array(values, pa.binary()), "headers": pa.nulls(count)}
    )


def write(*pieces: pa.RecordBatch, bytes_max: int = MIB, compression: Compression = Compression.NONE) -> Sent:
    sent = Sent()
    batches = Batching(UntypedEncoding(compression), sent)
    for piece in pieces:
        batches.check_rows("t", piece, row_sizes(piece), bytes_max)
        batches.add(T0, piece, bytes_max)
    batches.flush(lambda _: bytes_max)
    assert batches.batches_count == len(sent.batches)
    return sent


def test_small_pieces_are_put_together() -> None:
    sent = write(*[rows(b"%d" % i) for i in range(100)])
    assert len(sent.batches) == 1
    assert sent.values(T0) == [b"%d" % i for i in range(100)]


def test_large_pieces_are_cut_to_what_the_topic_takes() -> None:
    values = [b"%05d" % i * 20 for i in range(5_000)]
    sent = write(rows(*values), bytes_max=50_000)
    assert sent.values(T0) == values
    sizes = [len(batch) for _, batch in sent.batches]
    assert max(sizes) <= 50_000
    assert len(sizes) < 16


def test_a_batch_is_about_a_megabyte_even_if_the_topic_takes_more() -> None:
    sent = write(rows(*[b"x" * 1_000] * 5_000), bytes_max=100 * MIB)
    assert 5 <= len(sent.batches) <= 6


def test_a_row_larger_than_usual_goes_if_the_topic_takes_it() -> None:
    values = [b"a", b"b" * 3 * MIB, b"c"]
    sent = write(rows(*values), bytes_max=4 * MIB)
    assert sent.values(T0) == values


def test_a_row_that_does_not_fit_is_an_error_before_anything_is_sent() -> None:
    sent = Sent()
    piece = rows(b"small", b"x" * 2 * MIB)
    with pytest.raises(SparklogError, match=r"a row takes 2\d+ bytes.*1048588.*'t'.*max\.message\.bytes"):
        Batching(UntypedEncoding(Compression.NONE), sent).check_rows("t", piece, row_sizes(piece), 1_048_588)
    assert sent.batches == []


def test_a_row_that_fits_when_compressed_is_fine() -> None:
    large = b"x" * 2 * MIB
    sent = write(rows(large, large), compression=Compression.ZSTD)
    assert sent.values(T0) == [large, large]


def test_a_batch_that_comes_out_too_large_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "row_sizes", lambda batch: row_sizes(batch) // 4)
    values = [b"%04d" % i * 25 for i in range(1_000)]
    sent = write(rows(*values), bytes_max=20_000)
    assert sent.values(T0) == values
    assert max(len(batch) for _, batch in sent.batches) <= 20_000


def test_partitions_are_kept_apart() -> None:
    sent = Sent()
    batches = Batching(UntypedEncoding(Compression.NONE), sent)
    for i in range(10):
        batches.add(T0 if i % 2 else T1, rows(b"%d" % i), MIB)
    batches.flush(lambda _: MIB)
    assert sent.values(T1) == [b"0", b"2", b"4", b"6", b"8"]
    assert sent.values(T0) == [b"1", b"3", b"5", b"7", b"9"]


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "HELD_BYTES_MAX", 10_000)
    sent = Sent()
    batches = Batching(UntypedEncoding(Compression.NONE), sent)
    batches.add(T0, rows(b"x" * 6_000), MIB)
    batches.flush_if_much_is_held(lambda _: MIB)
    assert sent.batches == []
    batches.add(T1, rows(b"x" * 6_000), MIB)
    batches.flush_if_much_is_held(lambda _: MIB)
    assert len(sent.batches) == 2


def test_few_rows_are_written_as_kafka_records_many_as_arrow() -> None:
    few, many = write(rows(b"v")), write(rows(*[b"v"] * 100))
    assert not parse_header(few.batches[0][1]).is_arrow
    assert parse_header(many.batches[0][1]).is_arrow


@pytest.mark.parametrize("count", [1, 9, 10_000])
def test_the_overhead_is_ample(count: int) -> None:
    piece = rows(*[b"x" * 90] * count)
    sent = write(piece, bytes_max=100 * MIB)
    assert sum(len(batch) for _, batch in sent.batches) <= row_sizes(piece).sum() + 2 * BATCH_OVERHEAD_BYTES
