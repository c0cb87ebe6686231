"""Producers of the simulation ask for their ids, and the rule about these fires where it should only."""

import threading
from types import SimpleNamespace

import pytest

from simulation.clients.producer_identity import ASK_AGAIN_MS, ProducerIdentity
from simulation.invariants.invariant import Violation
from simulation.invariants.replication import EarlierEpochsAreFenced
from simulation.machines.producer_id_blocks import ProducerIdsAreUnique, small_blocks
from simulation.marks import Marks
from simulation.plans.plan import draw_plan
from simulation.run import simulate
from simulation.truth import Entry
from sparklog.broker.to_controller import producer_ids as of_brokers
from sparklog.core.controller import producer_id_blocks as of_controllers
from sparklog.core.controller.state.znodes import ProducerIdBlock
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.data.init_producer_id import InitProducerIdResponse

# ---- the rule ------------------------------------------------------------------------------------------


@pytest.fixture
def rule():
    """Broker 1 has the ids 0 to 2, broker 2 those from 3 to 5."""
    rule = ProducerIdsAreUnique()
    rule.on_block(ProducerIdBlock(1, 0, 2), 1)
    rule.on_block(ProducerIdBlock(2, 3, 5), 1)
    return rule


def test_each_id_may_be_given_once(rule):
    for number in range(3):
        rule.on_id("broker-1#1", 1, number)
    with pytest.raises(Violation, match="ProducerIdsAreUnique: broker-1#2 gives the id 1"):
        rule.on_id("broker-1#2", 1, 1)


def test_a_broker_may_not_give_ids_of_anothers_block(rule):
    with pytest.raises(Violation, match="gives the id 3, which is of ProducerIdBlock"):
        rule.on_id("broker-1#1", 1, 3)


def test_a_broker_may_not_give_ids_of_no_block(rule):
    with pytest.raises(Violation, match="gives the id 6, which is of None"):
        rule.on_id("broker-2#1", 2, 6)


@pytest.mark.parametrize("first", [3, 5])
def test_a_block_may_not_have_ids_of_one_before(rule, first):
    with pytest.raises(Violation, match="was taken after"):
        rule.on_block(ProducerIdBlock(1, first, first + 2), 2)


def test_a_block_may_leave_out_ids(rule):
    rule.on_block(ProducerIdBlock(1, 9, 11), 2)
    rule.on_id("broker-1#1", 1, 11)


@pytest.mark.parametrize(("life", "epoch"), [("p", 0), ("p~1", 0), ("q", 1)])
def test_each_answer_has_an_id_that_no_answer_had_before(rule, life, epoch):
    rule.on_answer("p", 4, 0)
    rule.on_answer("p", 5, 0)
    with pytest.raises(Violation, match=f"{life} is told the id 4 in epoch {epoch}, which is p's"):
        rule.on_answer(life, 4, epoch)


def test_each_id_begins_in_epoch_zero(rule):
    with pytest.raises(Violation, match="p is told the id 9 in epoch 1, which nobody began"):
        rule.on_answer("p", 9, 1)


def test_where_only_clients_are_looked_at_nobody_is_accused(rule):
    rule.is_silent = True
    rule.on_id("broker-1#1", 1, 77)
    rule.on_block(ProducerIdBlock(1, 0, 2), 2)


def entry(producer, epoch):
    return Entry(4, 5, 0, producer, epoch, 0, 1)


@pytest.mark.parametrize(
    ("known", "is_fine"),
    [((7, 1), False), ((7, 0), True), ((8, 1), True)],
    ids=["later", "same", "another's"],
)
def test_nothing_of_an_earlier_epoch_is_committed_behind_a_later_one(known, is_fine):
    truth = SimpleNamespace(topic_partition="quakes-0", last_sequences={known: 3})
    if is_fine:
        EarlierEpochsAreFenced().on_commit(truth, None, [entry(7, 0)])
        return
    with pytest.raises(Violation, match="EarlierEpochsAreFenced"):
        EarlierEpochsAreFenced().on_commit(truth, None, [entry(7, 0)])


def test_producers_without_ids_have_no_epochs():
    truth = SimpleNamespace(topic_partition="quakes-0", last_sequences={(-1, 1): 3})
    EarlierEpochsAreFenced().on_commit(truth, None, [entry(-1, -1)])


# ---- who asks ------------------------------------------------------------------------------------------


class Asking:
    """A producer's way to brokers: ``asked`` are its questions, and how each is answered."""

    name = "producer-1"
    process_name = "producer-1"

    def __init__(self):
        self.asked, self.waits, self.known = [], [], 0
        self.rule, marks = ProducerIdsAreUnique(), Marks()
        witness = SimpleNamespace(marks=marks, identities=self.rule)
        story = SimpleNamespace(tell=lambda who, what: None)
        place = SimpleNamespace(seed=1, hosts=("broker-1", "broker-2"), witness=witness, story=story)
        self.identity = ProducerIdentity(place, self, self.learnt)

    def learnt(self):
        self.known += 1

    def call(self, host, request, on_response, on_failure):
        self.asked.append((request, on_response, on_failure))

    def later(self, delay_ms, action):
        assert delay_ms == ASK_AGAIN_MS
        self.waits.append(action)

    def answer(self, number, *, producer_id=-1, epoch=-1, error=ErrorCode.none):
        self.asked[number][1](
            InitProducerIdResponse(error_code=error, producer_id=producer_id, producer_epoch=epoch)
        )


@pytest.fixture
def asking():
    asking = Asking()
    asking.identity.ask()
    return asking


def test_a_producer_is_who_it_is_told(asking):
    asking.answer(0, producer_id=7, epoch=0)
    assert (asking.identity.is_known, str(asking.identity), asking.known) == (True, "7", 1)


def test_who_is_refused_asks_again(asking):
    asking.answer(0, error=ErrorCode.coordinator_load_in_progress)
    assert not asking.identity.is_known
    asking.waits.pop()()
    asking.answer(1, producer_id=7, epoch=0)
    assert asking.identity.is_known


def test_who_is_not_answered_asks_again(asking):
    asking.asked[0][2](ConnectionError("nobody"))
    asking.waits.pop()()
    assert len(asking.asked) == 2


def test_what_is_answered_to_who_crashed_is_nobodys(asking):
    asking.identity.ask()
    asking.answer(0, producer_id=7, epoch=0)
    assert not asking.identity.is_known
    asking.asked[0][2](ConnectionError("gone"))
    assert not asking.waits
    asking.answer(1, producer_id=8, epoch=0)
    assert str(asking.identity) == "8"


def test_a_producer_that_starts_over_names_any_id_and_gets_a_fresh_one(asking):
    asking.answer(0, producer_id=7, epoch=0)
    named = set()
    for nth in range(1, 40):
        before = asking.identity.producer_id
        asking.identity.start_over()
        request = asking.asked[-1][0]
        kinds = {-1: "none", before: "its own"}
        kind = kinds.get(request.producer_id, "another's" if request.producer_id < before else "nobody's")
        named.add(kind)
        assert (request.producer_id == -1) == (request.producer_epoch == -1)
        asking.answer(-1, producer_id=7 + nth, epoch=0)
        assert asking.identity.producer_id == 7 + nth
    assert named == {"none", "its own", "another's", "nobody's"}


def test_who_does_not_know_yet_who_it_is_need_not_start_over(asking):
    asking.identity.start_over()
    assert len(asking.asked) == 1


# ---- in a run ------------------------------------------------------------------------------------------


def test_blocks_are_small_for_the_length_of_a_run():
    before = of_controllers.PRODUCER_ID_BLOCK_SIZE, of_brokers.LEFT_MIN
    with small_blocks(1):
        assert 1 <= of_brokers.LEFT_MIN <= of_controllers.PRODUCER_ID_BLOCK_SIZE <= 5
    assert (of_controllers.PRODUCER_ID_BLOCK_SIZE, of_brokers.LEFT_MIN) == before == (1_000, 100)


def test_a_run_gives_ids_and_leaves_no_thread_behind():
    before = threading.active_count()
    outcome = simulate(draw_plan(1), is_told=True)
    assert any("is told by broker-" in line for line in outcome.lines)
    assert any("producer ids 0 to" in line for line in outcome.lines)
    assert threading.active_count() == before


def test_a_run_that_is_cut_short_leaves_no_thread_behind():
    before = threading.active_count()
    for steps in range(20, 400, 20):
        simulate(draw_plan(2, steps_max=steps))
    assert threading.active_count() == before
