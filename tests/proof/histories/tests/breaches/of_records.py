"""L1 to L7: what is at an offset, what is lost, doubled, invented or out of order."""

from histories.tests.breaches.registry import breaks, legal

ONE_IN_FLIGHT = {"is_idempotent": False, "in_flight": 1}
"""Of a plain producer that promises the order of what is acknowledged."""

# ---- L1 ------------------------------------------------------------------------------------------------


@breaks("OneValuePerOffset")
def two_consumers_read_different_values_at_one_offset(it):
    it.send("a", 0)
    it.send("b", -1)
    it.poll(0, (0, "a"), process="one")
    it.poll(0, (0, "b"), process="other")
    it.final((0, "a"), (1, "b"))


@breaks("OneValuePerOffset")
def a_replica_has_another_value_than_was_read(it):
    it.send("a", 0, acks=1)
    it.send("b", 1, acks=1)
    it.poll(0, (0, "a"))
    it.dump("1", (0, 0, "b"), (1, 0, "b"))


@legal
def an_offset_that_only_a_leader_had_is_used_again(it):
    it.send("a", 0, acks=1, leader_epoch=1)
    it.leader(2)
    it.send("b", 0, session="other")
    it.final((0, "b"))


@legal
def a_topic_made_anew_begins_at_zero_again(it):
    it.send("a", 0)
    it.poll(0, (0, "a"))
    it.topic(is_created=False)
    it.topic(is_created=True)
    it.send("b", 0)
    it.poll(0, (0, "b"))
    it.final((0, "b"))


@legal
def an_election_that_may_lose_gives_offsets_again(it):
    it.send("a", 0, leader_epoch=1)
    it.poll(0, (0, "a"), leader_epoch=1)
    it.leader(2, is_unclean=True)
    it.send("b", 0, leader_epoch=2)
    it.poll(0, (0, "b"), leader_epoch=2)
    it.final((0, "b"))


@legal
def a_leader_that_was_given_up_answers_once_more(it):
    it.leader(2, is_unclean=True)
    it.send("b", 0, leader_epoch=2)
    it.send("a", -1, acks=0, session="other")
    it.poll(0, (0, "a"), process="late", leader_epoch=1)
    it.final((0, "b"))


@breaks("OneValuePerOffset")
def an_election_that_may_lose_excuses_nothing_that_came_after(it):
    it.leader(2, is_unclean=True)
    it.send("a", 0, acks=1, leader_epoch=2)
    it.send("b", 1, acks=1, leader_epoch=2)
    it.poll(0, (0, "a"), leader_epoch=2)
    it.poll(0, (0, "b"), process="other", leader_epoch=3)


# ---- L2 ------------------------------------------------------------------------------------------------


@breaks("AcknowledgedWritesStay")
def an_acknowledged_write_is_gone(it):
    it.send("a", 0)
    it.send("b", 1)
    it.final((0, "a"))


@breaks("AcknowledgedWritesStay")
def an_acknowledged_write_is_elsewhere(it):
    it.send("a", 3)
    it.final((0, "a"))


@breaks("AcknowledgedWritesStay")
def a_write_that_was_there_already_is_not(it):
    it.send("a", -1)
    it.final()


@breaks("AcknowledgedWritesStay")
def a_write_of_unknown_offset_behind_what_was_deleted_is_gone(it):
    it.send("a", 0)
    it.deleted(1)
    it.send("b", 1)
    it.send("c", -1)
    it.final((1, "b"), start=1)


@breaks("AcknowledgedWritesStay")
def compaction_takes_a_write_of_unknown_offset_behind_the_last_of_its_key(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k")
    it.send("b", -1, key="k")
    it.final((0, "a"))


@legal
def a_write_of_unknown_offset_may_be_below_what_was_deleted(it):
    it.send("a", -1)
    it.send("b", 1)
    it.deleted(1)
    it.final((1, "b"), start=1)


@legal
def compaction_took_a_write_of_unknown_offset_for_a_later_one(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k")
    it.send("b", -1, key="k")
    it.send("c", 2, key="k")
    it.final((2, "c"))


@breaks("AcknowledgedWritesStay")
def a_clean_election_loses_a_write(it):
    it.send("a", 0, leader_epoch=1)
    it.leader(2)
    it.final()


@breaks("AcknowledgedWritesStay")
def records_below_the_start_went_without_leave(it):
    it.send("a", 0)
    it.send("b", 1)
    it.send("c", 2)
    it.deleted(1)
    it.final((2, "c"), start=2)


@breaks("AcknowledgedWritesStay")
def a_deletion_in_the_topic_before_excuses_nothing(it):
    it.deleted(5)
    it.topic(is_created=False)
    it.topic(is_created=True)
    it.send("a", 0)
    it.final()


@breaks("AcknowledgedWritesStay")
def compaction_takes_the_last_record_of_a_key(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k")
    it.send("b", 1, key="k")
    it.send("c", 2, key="other")
    it.final((0, "a"), (2, "c"))


@breaks("AcknowledgedWritesStay")
def a_tombstone_before_it_excuses_nothing(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k", is_tombstone=True)
    it.send("b", 1, key="k")
    it.final()


@legal
def nobody_knows_and_it_is_there(it):
    it.answer(it.begin("a"), "info")
    it.begin("b")
    it.final((0, "a"), (1, "b"))


@legal
def nobody_knows_and_it_is_not_there(it):
    it.answer(it.begin("a"), "info")
    it.begin("b")
    it.final()


@legal
def what_was_deleted_is_gone(it):
    it.send("a", 0)
    it.send("b", 1)
    it.poll(0, (0, "a"), (1, "b"))
    it.deleted(1)
    it.final((1, "b"), start=1)


@legal
def compaction_took_what_was_replaced(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k")
    it.poll(0, (0, "a"))
    it.send("b", 1, key="k")
    it.final((1, "b"))


@legal
def a_tombstone_went_with_what_it_replaced(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k")
    it.send("b", 1, key="k", is_tombstone=True)
    it.final()


@legal
def a_tombstone_without_an_answer_replaced_it(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k")
    it.begin("b", key="k", is_tombstone=True)
    it.final()


@legal
def a_deleted_topic_has_nothing(it):
    it.send("a", 0)
    it.topic(is_created=False)


@legal
def a_send_while_its_topic_was_deleted_is_in_neither(it):
    send = it.begin("a")
    it.topic(is_created=False)
    it.answer(send, offset=0)
    it.topic(is_created=True)
    it.final()


# ---- L2' -----------------------------------------------------------------------------------------------


@breaks("LeadersLoseWithAnElectionOnly")
def a_leader_loses_what_it_acknowledged(it):
    it.leader(1)
    it.tick(60)
    it.send("a", 0, acks=1)
    it.final()


@breaks("LeadersLoseWithAnElectionOnly")
def the_election_came_before(it):
    it.leader(2)
    it.send("a", 0, acks=1, leader_epoch=2)
    it.final()


@breaks("LeadersLoseWithAnElectionOnly")
def a_leader_loses_what_lies_below_a_committed_record(it):
    it.send("a", 0, acks=1, leader_epoch=1)
    it.send("b", 1, leader_epoch=1, session="other")
    it.leader(2)
    it.final((1, "b"))


@legal
def a_leader_is_replaced_and_its_tail_is_lost(it):
    it.send("a", 0, acks=1, leader_epoch=1)
    it.leader(2)
    it.final()


@legal
def without_epochs_a_replaced_leader_may_answer_for_a_while(it):
    it.leader(2)
    it.send("a", 0, acks=1)
    it.final()


@legal
def a_later_commit_by_the_next_leader_proves_nothing(it):
    it.send("a", 0, acks=1, leader_epoch=1)
    it.leader(2)
    it.send("b", 0, leader_epoch=2, session="other")
    it.send("c", 1, leader_epoch=2, session="other")
    it.final((0, "b"), (1, "c"))


@legal
def without_acknowledgements_all_may_be_lost(it):
    it.send("a", -1, acks=0, is_idempotent=False)
    it.final()


# ---- L3 ------------------------------------------------------------------------------------------------


@breaks("NothingIsInvented")
def a_value_was_never_sent(it):
    it.send("a", 0)
    it.poll(0, (0, "a"), (1, "x"))
    it.final((0, "a"), (1, "x"))


@breaks("NothingIsInvented")
def a_refused_value_is_read(it):
    it.answer(it.begin("a"), "fail")
    it.final((0, "a"))


@breaks("NothingIsInvented")
def a_value_is_in_another_partition(it):
    it.begin("a", partition=1)
    it.final((0, "a"))


@breaks("NothingIsInvented")
def a_value_is_read_before_it_is_sent(it):
    it.poll(0, (0, "a"))
    it.begin("a")
    it.final((0, "a"))


@breaks("NothingIsInvented")
def a_replica_holds_what_nobody_sent(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0)
    it.final((0, "a"))
    it.dump("1", (0, 0, "a"), (1, 0, "x"))


@legal
def a_value_is_read_before_its_answer_comes(it):
    send = it.begin("a")
    it.poll(0, (0, "a"))
    it.answer(send, offset=0)
    it.final((0, "a"))


# ---- L4 ------------------------------------------------------------------------------------------------


@breaks("NothingIsDoubled")
def an_idempotent_producers_record_is_there_twice(it):
    it.send("a", 0)
    it.final((0, "a"), (1, "a"))


@legal
def other_producers_may_double_when_they_repeat(it):
    it.send("a", 1, is_idempotent=False)
    it.final((0, "a"), (1, "a"))


@legal
def a_repeated_send_of_an_idempotent_producer_is_there_once(it):
    first = it.begin("a")
    it.answer(first, offset=0)
    it.send("b", 1)
    it.poll(0, (0, "a"), (1, "b"))
    it.poll(0, (0, "a"), (1, "b"), process="other")
    it.final((0, "a"), (1, "b"))


# ---- L5 ------------------------------------------------------------------------------------------------


@breaks("ProducersKeepTheirOrder")
def one_in_flight_overtakes_another(it):
    first, second = it.begin("a"), it.begin("b")
    it.answer(second, offset=0)
    it.answer(first, offset=1)
    it.final((0, "b"), (1, "a"))


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_with_one_in_flight_overtakes_itself(it):
    first, second = it.begin("a", **ONE_IN_FLIGHT), it.begin("b", **ONE_IN_FLIGHT)
    it.answer(second, offset=0)
    it.answer(first, offset=1)
    it.final((0, "b"), (1, "a"))


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_is_acknowledged_by_one_replica_and_out_of_order_in_a_pause(it):
    waiting = it.begin("a", acks=1, **ONE_IN_FLIGHT)
    it.fault("pause-leader-1x", 20)
    it.send("b", 0, acks=1, leader_epoch=2, **ONE_IN_FLIGHT)
    it.answer(waiting, offset=1, leader_epoch=2)
    it.final((0, "b"), (1, "a"))


@legal
def a_plain_producer_repeats_what_was_there_and_is_acknowledged_for_the_later_copy(it):
    """librdkafka forms ``b``'s request while ``a``'s is in flight, and sends it before it repeats ``a``."""
    first = it.begin("a", **ONE_IN_FLIGHT)
    it.send("b", 1, **ONE_IN_FLIGHT)
    it.answer(first, offset=2)
    it.final((0, "a"), (1, "b"), (2, "a"))


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_overtakes_both_copies_of_what_it_repeats(it):
    first = it.begin("a", **ONE_IN_FLIGHT)
    it.send("b", 0, **ONE_IN_FLIGHT)
    it.answer(first, offset=2)
    it.final((0, "b"), (1, "a"), (2, "a"))


@legal
def a_plain_producer_overtakes_itself_while_bits_flip_on_the_way(it):
    it.send("z", 0, **ONE_IN_FLIGHT)
    refused = it.begin("a", **ONE_IN_FLIGHT)
    it.fault("packet-corruption", 20)
    it.send("b", 1, **ONE_IN_FLIGHT)
    it.answer(refused, offset=2)
    it.final((0, "z"), (1, "b"), (2, "a"))


@breaks("ProducersKeepTheirOrder")
def a_plain_producer_overtakes_itself_after_bits_have_flipped(it):
    it.fault("packet-corruption", 20)
    it.tick(60)
    first, second = it.begin("a", **ONE_IN_FLIGHT), it.begin("b", **ONE_IN_FLIGHT)
    it.answer(second, offset=0)
    it.answer(first, offset=1)
    it.final((0, "b"), (1, "a"))


@legal
def what_a_plain_producer_gave_up_comes_late(it):
    it.answer(it.begin("a", **ONE_IN_FLIGHT), "info")
    it.send("b", 0, **ONE_IN_FLIGHT)
    it.begin("c", **ONE_IN_FLIGHT)
    it.send("d", 1, **ONE_IN_FLIGHT)
    it.final((0, "b"), (1, "d"), (2, "a"), (3, "c"))


@legal
def a_try_that_a_plain_producer_gave_up_comes_late_although_the_next_one_was_acknowledged(it):
    it.send("a", 0, **ONE_IN_FLIGHT)
    it.send("b", 1, **ONE_IN_FLIGHT)
    it.final((0, "a"), (1, "b"), (2, "a"))


@legal
def what_only_the_leader_had_of_a_plain_producer_is_gone_and_the_rest_in_order(it):
    it.send("a", 0, acks=1, leader_epoch=1, **ONE_IN_FLIGHT)
    it.send("b", 1, acks=1, leader_epoch=1, **ONE_IN_FLIGHT)
    it.leader(2)
    it.send("c", 1, acks=1, leader_epoch=2, **ONE_IN_FLIGHT)
    it.final((0, "a"), (1, "c"))


@legal
def a_plain_producer_that_waits_for_nothing_overtakes_itself(it):
    it.send("a", -1, acks=0, **ONE_IN_FLIGHT)
    it.send("b", -1, acks=0, **ONE_IN_FLIGHT)
    it.final((0, "b"), (1, "a"))


@legal
def a_plain_producer_with_several_in_flight_overtakes_itself(it):
    first, second = (it.begin(one, is_idempotent=False, in_flight=5) for one in ("a", "b"))
    it.answer(second, offset=0)
    it.answer(first, offset=1)
    it.final((0, "b"), (1, "a"))


@legal
def sessions_overtake_one_another(it):
    first, second = it.begin("a", session="one"), it.begin("b", session="other")
    it.answer(second, offset=0)
    it.answer(first, offset=1)
    it.final((0, "b"), (1, "a"))


@legal
def a_producer_without_idempotence_overtakes_itself(it):
    first, second = it.begin("a", is_idempotent=False), it.begin("b", is_idempotent=False)
    it.answer(second, offset=0)
    it.answer(first, offset=1)
    it.final((0, "b"), (1, "a"))


@legal
def numbers_may_be_missing(it):
    it.send("a", 0)
    it.begin("b")
    it.send("c", 1)
    it.final((0, "a"), (1, "c"))


# ---- L6 ------------------------------------------------------------------------------------------------


@breaks("OrderIsReal")
def what_was_sent_after_an_answer_is_before_it(it):
    it.send("a", 1, session="one")
    it.send("b", 0, session="other")
    it.final((0, "b"), (1, "a"))


@breaks("OrderIsReal")
def what_was_sent_after_an_answer_without_an_offset_is_before_it(it):
    it.send("a", -1, session="one")
    it.send("b", 0, session="other")
    it.final((0, "b"), (1, "a"))


@legal
def what_was_sent_at_the_same_time_is_before_it(it):
    first = it.begin("a", session="one")
    second = it.begin("b", session="other")
    it.answer(first, offset=1)
    it.answer(second, offset=0)
    it.final((0, "b"), (1, "a"))


@legal
def a_late_copy_of_an_unknown_send_is_behind_later_ones(it):
    it.answer(it.begin("a", is_idempotent=False), "info")
    it.send("b", 0, session="other")
    it.final((0, "b"), (1, "a"))


# ---- L7 ------------------------------------------------------------------------------------------------


@breaks("ReadsAreRepeatable")
def what_was_read_is_gone(it):
    it.send("a", 0)
    it.begin("b")
    it.poll(0, (0, "a"), (1, "b"))
    it.final((0, "a"))


@breaks("ReadsAreRepeatable")
def a_read_record_goes_with_a_clean_election(it):
    it.begin("a")
    it.poll(0, (0, "a"), leader_epoch=1)
    it.leader(2)
    it.final()


@legal
def a_read_record_goes_with_an_election_that_may_lose(it):
    it.begin("a")
    it.poll(0, (0, "a"), leader_epoch=1)
    it.leader(2, is_unclean=True)
    it.final()
