"""What a producer of transactions, or a member of an atomic write, calls what it sends."""

from types import SimpleNamespace

import pytest

from simulation.clients.transactions.sender import BatchSender
from simulation.recorder import Recorder
from simulation.schedule import Schedule
from sparklog.model.ids import TopicPartition

TP = TopicPartition("quakes", 0)


class Sender(BatchSender):
    """Its test makes its batches."""

    def live(self):
        yield from ()


@pytest.fixture
def place():
    schedule = Schedule()
    return SimpleNamespace(
        schedule=schedule, seed=1, witness=SimpleNamespace(truths={}), recorder=Recorder(schedule)
    )


def send_two(place, life):
    """By a process of its own, which was told the producer id 7."""
    sender = Sender(place, "app", life, 1, SimpleNamespace(on_batch=lambda transaction, entry: None))
    sender._producer = 7, 0
    return [name for _ in range(2) for name in sender._make(None, TP).record.names()]


def test_what_two_processes_send_has_different_names_although_both_were_told_one_identity(place):
    """Seed 1602: an election lost the record of a member, and the next attempt was told its producer id."""
    names = send_two(place, "attempt 0") + send_two(place, "attempt 1")
    assert len(set(names)) == 4
