"""What a cut hides, and that it is the same for all who agree upon it."""

import pytest

from sparklog.client.transactions.cut import Answer, Cut, PartitionCut, cut_of, decode, encode
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.write_ids import producer_id_of
from sparklog.records.envelope import parse_header
from sparklog.records.kafka.encode import Record, build_records_batch

A, B = TopicPartition("a", 0), TopicPartition("a\u00e9", 7)


def header(offset, *, producer_id=-1, is_transactional=False):
    """Of a batch of two records, the first at ``offset``."""
    batch = build_records_batch(
        [Record(value=b"v")] * 2,
        now_ms=1,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        is_transactional=is_transactional,
    )
    return parse_header(batch)._replace(base_offset=offset)


def test_a_write_that_one_leader_names_is_hidden_in_all_partitions():
    cut = cut_of({A: Answer(10, 8, frozenset({5})), B: Answer(20, 20, frozenset())})
    assert cut.of(A) == PartitionCut(10, 8, frozenset({5}))
    assert cut.of(B) == PartitionCut(20, 20, frozenset({5}))
    assert cut.of(TopicPartition("later", 0)) is None


@pytest.mark.parametrize(
    ("write", "offset", "is_hidden"), [(5, 0, True), (5, 8, True), (6, 0, False), (6, 8, False)]
)
def test_a_batch_of_a_write_is_hidden_by_its_number_wherever_it_is(write, offset, is_hidden):
    cut = PartitionCut(10, 4, frozenset({5}))
    batch = header(offset, producer_id=producer_id_of(write, 3), is_transactional=True)
    assert cut.hides(batch) is is_hidden


@pytest.mark.parametrize(("offset", "is_hidden"), [(0, False), (2, False), (3, True), (4, True)])
@pytest.mark.parametrize("of_transaction", [False, True])
def test_another_batch_is_hidden_from_the_last_stable_offset_on(offset, is_hidden, of_transaction):
    cut = PartitionCut(10, 4, frozenset())
    batch = header(offset, producer_id=9 if of_transaction else -1, is_transactional=of_transaction)
    assert cut.hides(batch) is is_hidden


def test_a_cut_is_read_as_it_was_written():
    cut = Cut({A: (10, 8), B: (0, 0), TopicPartition("a", 1): (2**62, 5)}, frozenset({2**41, 3}))
    assert decode(encode(cut)) == cut
    assert decode(encode(Cut({}, frozenset()))) == Cut({}, frozenset())


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is damaged"),
        (b"[]", "is damaged"),
        (b"{}", "is damaged"),
        (b'{"version":1,"hidden":[],"ends":{"a":[[0,1]]}}', "is damaged"),
        (b'{"version":1,"hidden":["x"],"ends":{}}', "is damaged"),
        (b'{"version":2}', "has version 2, this release knows 1; install one release"),
    ],
)
def test_what_is_no_cut_is_refused(data, problem):
    with pytest.raises(SparklogError, match=problem):
        decode(data)
