"""How far a run of batches of records is found to go, whatever the batches' sizes and wherever reads end."""

import random

import pytest

from sparklog.broker.conversion import records_run
from sparklog.broker.conversion.records_run import CHUNK_BYTES, records_end
from sparklog.model.parts import FileSlice
from sparklog.records.envelope import ENVELOPE_BYTES
from tests.broker.conversion.test_untyped_rows import arrow, records

SMALL, LARGE, HUGE = records(0, b"x"), records(0, b"x" * 20_000), records(0, b"x" * 3 * CHUNK_BYTES)
ARROW = arrow(0, b"x")


class Disk:
    """A file in memory; ``reads`` has the length of each read."""

    def __init__(self, data):
        self.data, self.reads = data, []

    def fileno(self):
        return -1

    def pread(self, length, position):
        self.reads.append(length)
        return self.data[position : position + length]


def end_in_a_file(data, position=0):
    disk = Disk(b"before" + data + b"behind")
    return records_end(FileSlice(disk, 6, len(data)), position), disk.reads


@pytest.mark.parametrize("seed", range(30))
def test_the_run_ends_before_the_first_batch_of_another_kind(seed):
    draw = random.Random(seed)
    run = b"".join(draw.choices([SMALL, LARGE, HUGE], [100, 5, 1], k=draw.randrange(1, 2_000)))
    assert end_in_a_file(run) == (len(run), end_in_a_file(run)[1])
    assert end_in_a_file(run + ARROW + SMALL)[0] == len(run)
    assert records_end(memoryview(run + ARROW), 0) == len(run)


def test_the_run_begins_where_it_is_said_to():
    data = ARROW + SMALL * 3 + ARROW
    assert end_in_a_file(data, len(ARROW))[0] == len(data) - len(ARROW)
    assert end_in_a_file(data)[0] == 0
    assert end_in_a_file(data, len(data)) == (len(data), [])


@pytest.mark.parametrize("torn", [SMALL[:-1], SMALL[: ENVELOPE_BYTES - 1], HUGE[:-1], b"\xff" * 100])
@pytest.mark.parametrize("in_front", [0, 1, 2_000])
def test_the_run_ends_before_what_is_no_whole_batch(torn, in_front):
    assert end_in_a_file(SMALL * in_front + torn)[0] == len(SMALL) * in_front


@pytest.mark.parametrize(
    ("position", "flaw"), [(0, 0x80), (16, 0x01), (8, 0x80), (23, 0x80), (57, 0x80)], ids=str
)
def test_the_run_ends_before_an_envelope_that_cannot_be(position, flaw):
    damaged = bytearray(SMALL)
    damaged[position] ^= flaw
    assert end_in_a_file(SMALL * 9 + bytes(damaged) + SMALL)[0] == len(SMALL) * 9


def test_small_batches_are_read_many_at_a_time_and_of_large_ones_only_the_envelopes():
    assert sum(end_in_a_file(SMALL * 4_000)[1]) < len(SMALL) * 4_000 + 10 * ENVELOPE_BYTES
    assert len(end_in_a_file(SMALL * 4_000)[1]) <= len(SMALL) * 4_000 // CHUNK_BYTES + 2
    assert end_in_a_file(LARGE * 50)[1] == [ENVELOPE_BYTES] * 50
    assert end_in_a_file(HUGE * 5)[1] == [ENVELOPE_BYTES] * 5


@pytest.mark.parametrize("chunk_bytes", range(ENVELOPE_BYTES, 2 * len(SMALL) + 1))
def test_a_read_may_end_anywhere_in_a_batch(monkeypatch, chunk_bytes):
    monkeypatch.setattr(records_run, "CHUNK_BYTES", chunk_bytes)
    assert end_in_a_file(SMALL * 7 + ARROW)[0] == len(SMALL) * 7
