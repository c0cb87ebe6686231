"""L5, where a request of a plain producer times out.

librdkafka puts the records of a request that had no answer back, and forms requests anew, while the next
request was formed already: ``a`` times out, ``b`` is in the next one, and ``c`` is sent with ``a``. Only that
is legal.
"""

from histories.tests.breaches.of_records import ONE_IN_FLIGHT
from histories.tests.breaches.registry import breaks, legal


def what_times_out_is_sent_again_with_a_later_record(it, *, kind=ONE_IN_FLIGHT, session="s", waited_s=5):
    """``a`` and ``c`` are before ``b``."""
    first = it.begin("a", **kind)
    it.tick(3)
    between = it.begin("b", **kind)
    it.tick(3)
    it.timed_out(session, waited_s)
    later = it.begin("c", **kind)
    it.answer(first, offset=0)
    it.answer(later, offset=1)
    it.answer(between, offset=2)
    it.final((0, "a"), (1, "c"), (2, "b"))


@legal
def a_plain_producer_sends_what_timed_out_before_what_waited(it):
    what_times_out_is_sent_again_with_a_later_record(it)


@legal
def what_waited_is_before_what_timed_out(it):
    first = it.begin("a", **ONE_IN_FLIGHT)
    between = it.begin("b", **ONE_IN_FLIGHT)
    it.tick(5)
    it.timed_out()
    it.answer(between, offset=0)
    it.answer(first, offset=1)
    it.final((0, "b"), (1, "a"))


@legal
def what_timed_out_is_given_up_and_what_waited_is_late(it):
    first = it.begin("a", **ONE_IN_FLIGHT)
    between = it.begin("b", **ONE_IN_FLIGHT)
    it.tick(5)
    it.timed_out()
    later = it.begin("c", **ONE_IN_FLIGHT)
    it.answer(first, "info")
    it.answer(later, offset=0)
    it.answer(between, offset=1)
    it.final((0, "c"), (1, "b"))


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_overtakes_itself_and_no_request_timed_out(it):
    what_times_out_is_sent_again_with_a_later_record(it, session="another")


@breaks("ProducersKeepTheirOrder")
def an_idempotent_producer_overtakes_itself_at_a_time_out(it):
    what_times_out_is_sent_again_with_a_later_record(it, kind={})


@breaks("ProducersKeepTheirOrder")
def a_request_times_out_that_had_no_record_of_the_partition(it):
    """Nothing was under way there for as long."""
    what_times_out_is_sent_again_with_a_later_record(it, waited_s=60)


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_overtakes_what_it_sent_after_the_time_out(it):
    first = it.begin("a", **ONE_IN_FLIGHT)
    it.tick(5)
    it.timed_out()
    between, later = it.begin("b", **ONE_IN_FLIGHT), it.begin("c", **ONE_IN_FLIGHT)
    it.answer(first, offset=0)
    it.answer(later, offset=1)
    it.answer(between, offset=2)
    it.final((0, "a"), (1, "c"), (2, "b"))


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_overtook_itself_before_the_time_out(it):
    first = it.begin("a", **ONE_IN_FLIGHT)
    it.send("b", 0, **ONE_IN_FLIGHT)
    it.tick(5)
    it.timed_out()
    it.answer(first, offset=1)
    it.final((0, "b"), (1, "a"))


@breaks("ProducersKeepTheirOrder")
def what_was_answered_before_the_time_out_is_late(it):
    first = it.begin("a", **ONE_IN_FLIGHT)
    between, later = it.begin("b", **ONE_IN_FLIGHT), it.begin("c", **ONE_IN_FLIGHT)
    it.answer(between, offset=2)
    it.tick(5)
    it.timed_out()
    it.answer(first, offset=0)
    it.answer(later, offset=1)
    it.final((0, "a"), (1, "c"), (2, "b"))
