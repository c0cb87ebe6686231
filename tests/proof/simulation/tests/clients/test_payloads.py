"""What is in simulated batches: the same rows of either kind, and a reader that tells whether they are."""

import pytest

from simulation.clients.payloads import Row, is_as_sent, payload_of, payload_of_rows, rows_in
from simulation.plans.client_mix import ClientMix
from simulation.plans.faults import Hunt
from simulation.plans.plan import COMPACTED, draw_plan
from simulation.run import simulate
from sparklog.records.envelope import ARROW_BIT, build_envelope, crc_matches, parse_header
from sparklog.records.transcode import arrow_to_records

ROWS = ((b"key 1", b"7/1"), (b"key 2", None), (b"key 1", b"7/3"))
SENT_MS = 1_700


def batch_of(payload, count, *, is_arrow, sent_ms=SENT_MS):
    batch = build_envelope(
        payload,
        attributes=ARROW_BIT if is_arrow else 0,
        record_count=count,
        last_offset_delta=count - 1,
        base_timestamp_ms=sent_ms,
        max_timestamp_ms=sent_ms,
    )
    header = parse_header(batch)
    assert crc_matches(batch, 0, header)
    return memoryview(batch), header


@pytest.mark.parametrize("is_arrow", [False, True])
def test_both_kinds_have_the_same_rows(is_arrow):
    keyed = batch_of(payload_of_rows(ROWS, SENT_MS, is_arrow=is_arrow), 3, is_arrow=is_arrow)
    assert list(rows_in(*keyed)) == [Row(delta, key, value) for delta, (key, value) in enumerate(ROWS)]
    alike = batch_of(payload_of(2, is_arrow=is_arrow), 2, is_arrow=is_arrow)
    assert is_as_sent(*alike, alike[1])


@pytest.mark.parametrize(
    "other", [payload_of(3), payload_of_rows(((b"k", b"value"),) * 2, 0), payload_of_rows(ROWS[:2], 0)]
)
def test_other_records_than_were_sent_are_told_apart(other):
    count = 3 if other == payload_of(3) else 2
    _, sent = batch_of(payload_of(2, is_arrow=True), 2, is_arrow=True)
    assert not is_as_sent(*batch_of(other, count, is_arrow=False), sent)


def test_another_time_is_told_apart():
    arrow, sent = batch_of(payload_of(2, is_arrow=True), 2, is_arrow=True)
    given = arrow_to_records(arrow)
    assert is_as_sent(memoryview(given), parse_header(given), sent)
    later, _ = batch_of(payload_of(2, is_arrow=True), 2, is_arrow=True, sent_ms=SENT_MS + 1)
    given = arrow_to_records(later)
    assert not is_as_sent(memoryview(given), parse_header(given), sent)


CLIENTS = ClientMix(has_rereaders=True, arrow_share=1.0)


def reached(**hunt):
    """What clean runs of a few seeds came to."""
    found = set()
    for seed in range(1, 6):
        told = simulate(draw_plan(seed, hunt=Hunt(kinds=("kill broker",), **hunt)))
        assert told.violation is None
        found |= set(told.marks)
    return found


def test_readers_without_arrow_are_given_records_and_others_what_is_stored():
    assert "a consumer was given records of an Arrow batch" in reached(clients=CLIENTS)
    assert "a consumer was given records of an Arrow batch" not in reached()


def test_arrow_batches_are_compacted_as_well():
    plan = draw_plan(1, hunt=Hunt(is_compacted=True, clients=CLIENTS))
    assert int(plan.topic_configs["segment.bytes"]) == 3 * int(COMPACTED["segment.bytes"])
    compacted = reached(is_compacted=True, clients=CLIENTS)
    assert "a consumer read an Arrow batch that was compacted" in compacted
