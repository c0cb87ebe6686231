"""Producer ids come in blocks, asked for before they are needed, and none comes twice."""

import threading

import pytest

from sparklog.broker.to_controller.producer_ids import LEFT_MIN, ProducerIds
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.wire.messages.control.allocate_producer_ids import AllocateProducerIdsResponse

EPOCH = BrokerEpoch(7)


class Link:
    """A controller that gives blocks of 1000, or is away."""

    def __init__(self) -> None:
        self.is_away, self.given = False, 0

    def call(self, message, *, timeout_ms, lane=""):
        if self.is_away:
            raise ConnectionError("no controller is elected")
        self.given += 1
        return AllocateProducerIdsResponse(producer_id_start=self.given * 1_000, producer_id_len=1_000)


class AtOnce:
    def submit(self, work) -> None:
        work()


@pytest.fixture
def link() -> Link:
    return Link()


@pytest.fixture
def ids(link) -> ProducerIds:
    return ProducerIds(BrokerId(1), link, AtOnce(), guard=threading.Lock(), asking=threading.Lock())


def test_ids_are_there_while_the_controller_is_away(ids, link) -> None:
    ids.look_ahead(EPOCH)
    link.is_away = True
    assert [ids.take(EPOCH) for _ in range(1_000)] == list(range(1_000, 2_000))
    with pytest.raises(ConnectionError, match="no controller"):
        ids.take(EPOCH)
    link.is_away = False
    assert ids.take(EPOCH) == 2_000


def test_the_next_block_is_asked_for_before_the_last_ids_are_gone(ids, link) -> None:
    for _ in range(1_000 - LEFT_MIN):
        ids.take(EPOCH)
    assert link.given == 1
    ids.take(EPOCH)
    assert link.given == 2
    taken = [ids.take(EPOCH) for _ in range(1_500)]
    assert len(set(taken)) == 1_500
    assert link.given == 3
