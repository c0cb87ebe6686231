"""L5, where a plain producer's request waits at a leader while another is elected.

librdkafka has one request in flight at each broker: it sends later records to the new leader meanwhile. Only
that is legal.
"""

from histories.tests.breaches.of_records import ONE_IN_FLIGHT
from histories.tests.breaches.registry import breaks, legal


def a_request_waits_at_a_leader_while_another_is_elected(it, next_leader="2", **fields):
    """``a`` is under way at broker 1; ``b`` and ``c`` are appended by the next leader, before ``a``."""
    it.leader(4, "1")
    it.send("z", 0, **ONE_IN_FLIGHT)
    waiting = it.begin("a", **ONE_IN_FLIGHT, **fields)
    it.leader(5, next_leader)
    it.send("b", 1, **ONE_IN_FLIGHT)
    it.send("c", 2, **ONE_IN_FLIGHT)
    it.answer(waiting, offset=3)
    it.final((0, "z"), (1, "b"), (2, "c"), (3, "a"))


@legal
def a_plain_producers_request_waits_at_a_former_leader_while_later_ones_go_to_the_next(it):
    a_request_waits_at_a_leader_while_another_is_elected(it)
    it.poll(0, (0, "z"), (1, "b"), (2, "c"), (3, "a"), epochs=((0, 4), (1, 5)))


@legal
def what_waited_at_a_former_leader_is_acknowledged_by_one_replica(it):
    a_request_waits_at_a_leader_while_another_is_elected(it, acks=1)
    it.dump("2", (0, 4, "z"), (1, 5, "b"), (2, 5, "c"), (3, 5, "a"))


@legal
def nobody_leads_between_a_former_leader_and_the_next(it):
    it.leader(4, "1")
    waiting = it.begin("a", **ONE_IN_FLIGHT)
    it.leader(5, "-1")
    it.leader(6, "2")
    it.send("b", 0, leader_epoch=6, **ONE_IN_FLIGHT)
    it.answer(waiting, offset=1, leader_epoch=6)
    it.final((0, "b"), (1, "a"))


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_overtakes_itself_while_the_same_leader_is_elected_again(it):
    a_request_waits_at_a_leader_while_another_is_elected(it, next_leader="1")
    it.poll(0, (0, "z"), (1, "b"), (2, "c"), (3, "a"), epochs=((0, 4), (1, 5)))


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_overtakes_itself_at_the_former_leader(it):
    """``b`` is appended by it, before ``a``; only ``c`` by the next."""
    a_request_waits_at_a_leader_while_another_is_elected(it)
    it.poll(0, (0, "z"), (1, "b"), (2, "c"), (3, "a"), epochs=((0, 4), (2, 5)))


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_overtakes_itself_in_an_epoch_that_nobody_tells(it):
    a_request_waits_at_a_leader_while_another_is_elected(it)


@legal
def a_plain_producer_hears_late_that_another_leader_was_elected(it):
    it.leader(4, "1")
    it.leader(5, "2")
    it.send("x", 0, session="other", leader_epoch=5)
    first, second = it.begin("a", **ONE_IN_FLIGHT), it.begin("b", **ONE_IN_FLIGHT)
    it.answer(second, offset=1, leader_epoch=5)
    it.answer(first, offset=2, leader_epoch=5)
    it.final((0, "x"), (1, "b"), (2, "a"))


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_overtakes_itself_after_the_new_leader_has_answered_it(it):
    it.leader(4, "1")
    it.leader(5, "2")
    it.send("x", 0, leader_epoch=5, **ONE_IN_FLIGHT)
    late, overtaking = it.begin("a", **ONE_IN_FLIGHT), it.begin("b", **ONE_IN_FLIGHT)
    it.answer(overtaking, offset=1, leader_epoch=5)
    it.answer(late, offset=2, leader_epoch=5)
    it.final((0, "x"), (1, "b"), (2, "a"))


@breaks("ProducersKeepTheirOrder")
def one_of_two_that_come_late_was_sent_after_the_new_leaders_answer(it):
    it.leader(4, "1")
    waiting = it.begin("a", **ONE_IN_FLIGHT)
    it.leader(5, "2")
    it.send("c", 0, seq=5, leader_epoch=5, **ONE_IN_FLIGHT)
    late = it.begin("b", seq=4, **ONE_IN_FLIGHT)
    it.answer(waiting, offset=1, leader_epoch=5)
    it.answer(late, offset=2, leader_epoch=5)
    it.final((0, "c"), (1, "a"), (2, "b"))


@breaks("ProducersKeepTheirOrder")
def an_idempotent_producers_request_waits_at_a_former_leader(it):
    it.leader(4, "1")
    waiting = it.begin("a")
    it.leader(5, "2")
    it.send("b", 0, leader_epoch=5)
    it.answer(waiting, offset=1, leader_epoch=5)
    it.final((0, "b"), (1, "a"))
