"""The records of fuzzed produces: what is meant to be whole is taken by a leader, old messages included."""

import random

import pytest

from fuzz.records import draw_records, whole_sets
from sparklog.records.legacy.to_batch import batch_of_messages
from sparklog.records.validate import RefusedBatch

BYTES_MAX = 1_000_000


@pytest.mark.parametrize("number", range(len(whole_sets())))
def test_a_whole_set_becomes_a_batch(number):
    converted = batch_of_messages(memoryview(whole_sets()[number]), None, max_batch_bytes=BYTES_MAX)
    assert not isinstance(converted, RefusedBatch)


def test_sets_of_old_messages_are_drawn_whole_and_damaged():
    dice = random.Random(1)
    whole = {draw_records(dice, is_odd=False) for _ in range(200)}
    odd = {draw_records(dice, is_odd=True) for _ in range(200)}
    assert whole >= set(whole_sets())
    refused = [
        drawn
        for drawn in odd - whole
        if drawn
        and isinstance(batch_of_messages(memoryview(drawn), None, max_batch_bytes=BYTES_MAX), RefusedBatch)
    ]
    assert len(refused) > 20
