"""A few records are measured, copied and rewritten one by one; the outcome is that of many."""

import random

import numpy as np
import pytest

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import parse_header
from sparklog.records.filtering import filter_records
from sparklog.records.filtering.filter import decode
from sparklog.records.kafka import spans as kafka_spans
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.kafka.kafka_payload import records_of
from sparklog.records.kafka.spans import boundaries, gather, spans_of


def batch_of(draw: random.Random, count: int) -> bytes:
    def text(most: int) -> bytes | None:
        return None if draw.random() < 0.2 else bytes(draw.randrange(most))

    records = [Record(text(90), text(9_000), draw.randrange(1 << 40)) for _ in range(count)]
    return build_records_batch(records, now_ms=0)


@pytest.fixture
def by_numpy(monkeypatch):
    """From here on no number of records counts as few."""

    def switch() -> None:
        monkeypatch.setattr(kafka_spans, "FEW_RECORDS", 0)
        monkeypatch.setattr(filter_records, "FEW_RECORDS", 0)

    return switch


@pytest.mark.parametrize("seed", range(20))
def test_few_records_are_measured_and_rewritten_as_many_are(seed, by_numpy):
    draw = random.Random(seed)
    count = draw.randrange(1, 20)
    batch = batch_of(draw, count)
    kept = np.array(sorted(draw.sample(range(count), draw.randint(1, count))))

    def outcome():
        run = decode(batch, (0, parse_header(batch)))
        rebuilt = [run.rebuild(0, kept), run.rebuild(0, kept, 1 << 41), run.rebuild(0, kept, 0)]
        return run.keys.to_pylist(), run.offsets.tolist(), run.is_tombstone.tolist(), rebuilt

    few = outcome()
    by_numpy()
    assert outcome() == few


@pytest.mark.parametrize("seed", range(20))
def test_few_damaged_records_are_refused_as_many_are(seed, by_numpy):
    draw = random.Random(seed)
    batch = batch_of(draw, 4)
    whole = records_of(batch, parse_header(batch))
    damaged = []
    for _ in range(200):
        octets = bytearray(whole)
        octets[draw.randrange(min(60, len(octets)))] ^= 1 << draw.randrange(8)
        damaged.append(bytes(octets))

    def outcome(payload: bytes):
        try:
            begins, _ = boundaries(payload, 0, len(payload), 4)
            spans = spans_of(payload, begins)
        except (CorruptBatch, IndexError) as error:
            return type(error)
        keys = gather(payload, spans.key_starts, spans.key_lengths).to_pylist()
        return keys, spans.offset_deltas.tolist(), spans.timestamp_deltas_ms.tolist()

    few = [outcome(payload) for payload in damaged]
    by_numpy()
    assert [outcome(payload) for payload in damaged] == few
    assert CorruptBatch in few
