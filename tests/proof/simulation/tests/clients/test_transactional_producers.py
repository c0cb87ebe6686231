"""How long a simulated transactional producer tries to have its batches taken."""

from types import SimpleNamespace

import pytest

from simulation.clients.transactions.producer import TransactionalProducer
from simulation.clients.transactions.script import GaveUpError, Wait
from simulation.plans.plan import draw_plan
from simulation.schedule import US_PER_MS, Schedule
from sparklog.model.ids import TopicPartition

TP = TopicPartition("flights", 0)
PLAN = next(plan.transactions[0] for plan in map(draw_plan, range(1, 60)) if plan.transactions)


class Place(SimpleNamespace):
    """A cluster that answers nothing; ``given_up`` counts the sends whose end nobody knows."""

    def __init__(self):
        super().__init__(schedule=Schedule(), seed=1, hosts=("broker-1",), given_up=0)
        self.witness = SimpleNamespace(truths={TP: object()})
        self.recorder = SimpleNamespace(end=self._end)

    def _end(self, record, status, *, error):
        assert (status, error) == ("info", "given up")
        self.given_up += 1


@pytest.fixture
def place():
    return Place()


@pytest.fixture
def sending(place):
    """All was mended while this producer stood still in front of its first batch."""
    producer = TransactionalProducer(place, "transactional-0", 1, PLAN, None, [TP])
    producer.is_polite = True
    return producer._send_all(SimpleNamespace(), [SimpleNamespace(where=TP, record=None)])


def go_on(sending, place, seconds):
    """Nobody tells it who leads."""
    until_us = place.schedule.now_us + seconds * 1_000 * US_PER_MS
    step = sending.send(None)
    while place.schedule.now_us < until_us:
        place.schedule.now_us += int(step.ms * US_PER_MS) if isinstance(step, Wait) else US_PER_MS
        step = sending.send(None if isinstance(step, Wait) else [None])


def test_who_is_polite_waits_for_the_leader_of_a_partition_as_long_as_there_is_one(sending, place):
    go_on(sending, place, seconds=50)
    assert place.given_up == 0


def test_who_is_polite_gives_up_what_was_for_a_topic_that_is_deleted_seed_1899(sending, place):
    del place.witness.truths[TP]
    with pytest.raises(GaveUpError):
        go_on(sending, place, seconds=50)
    assert place.given_up == 1
