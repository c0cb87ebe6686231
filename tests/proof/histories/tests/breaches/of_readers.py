"""L8 to L11: what consumers and replicas see, and whether a cluster comes to rest."""

from histories.tests.breaches.registry import breaks, legal

# ---- L8 ------------------------------------------------------------------------------------------------


@breaks("PollsGoOn")
def a_consumer_skips_a_record(it):
    it.send("a", 0)
    it.send("b", 1)
    it.send("c", 2)
    it.poll(0, (0, "a"))
    it.poll(1, (2, "c"))
    it.final((0, "a"), (1, "b"), (2, "c"))


@breaks("PollsGoOn")
def a_consumer_skips_between_polls(it):
    it.send("a", 0)
    it.send("b", 1)
    it.send("c", 2)
    it.poll(0, (0, "a"))
    it.poll(2, (2, "c"))
    it.final((0, "a"), (1, "b"), (2, "c"))


@breaks("PollsGoOn")
def a_consumer_goes_back(it):
    it.send("a", 0)
    it.poll(0, (0, "a"))
    it.poll(0)
    it.final((0, "a"))


@breaks("PollsGoOn")
def a_poll_gives_what_is_below_its_position(it):
    it.send("a", 0)
    it.send("b", 1)
    it.poll(1, (0, "a"), (1, "b"))
    it.final((0, "a"), (1, "b"))


@breaks("PollsGoOn")
def a_poll_is_not_in_order(it):
    it.send("a", 0)
    it.send("b", 1)
    it.poll(0, (1, "b"), (0, "a"))
    it.final((0, "a"), (1, "b"))
    it.history.reads[0].records = [(0, "a"), (1, "b"), (0, "a")]


@legal
def a_consumer_seeks_back_and_forth(it):
    it.send("a", 0)
    it.send("b", 1)
    it.poll(0, (0, "a"))
    it.seek(0)
    it.poll(0, (0, "a"))
    it.seek(1)
    it.poll(1, (1, "b"))
    it.final((0, "a"), (1, "b"))


@legal
def a_consumer_passes_holes_of_compaction(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k")
    it.send("b", 1, key="k")
    it.send("c", 2, key="other")
    it.poll(0, (1, "b"))
    it.poll(2, (2, "c"))
    it.final((1, "b"), (2, "c"))


@legal
def a_replica_has_what_another_one_compacted_away(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k")
    it.send("b", 1, key="k")
    it.poll(0, (1, "b"))
    it.final((0, "a"), (1, "b"))


@legal
def a_replica_compacted_a_record_away_for_one_that_an_election_lost(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k", leader_epoch=1)
    it.send("b", 1, key="k", acks=1, leader_epoch=1)
    it.leader(2, is_unclean=True)
    it.send("c", 1, key="other", leader_epoch=2)
    it.poll(0, (1, "c"), leader_epoch=2)
    it.final((0, "a"), (1, "c"))


@breaks("PollsGoOn")
def no_election_excuses_that_a_record_is_skipped_for_one_that_was_sent_after_it(it):
    it.topic(is_created=True, is_compacted=True)
    it.leader(2, is_unclean=True)
    it.send("a", 0, key="k", acks=1, leader_epoch=2)
    it.send("b", -1, key="k", acks=0)
    it.send("c", 1, key="other", leader_epoch=2)
    it.poll(0, (1, "c"), leader_epoch=2)
    it.final((0, "a"), (1, "c"))


@breaks("PollsGoOn")
def a_consumer_skips_the_last_record_of_a_key(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k")
    it.send("b", 1, key="other")
    it.poll(0, (1, "b"))
    it.final((0, "a"), (1, "b"))


# ---- L9 ------------------------------------------------------------------------------------------------


@breaks("TheEndNeverFallsBack")
def a_new_leader_tells_a_lower_end(it):
    it.end(5, leader_epoch=1)
    it.end(4, leader_epoch=2)


@breaks("TheEndNeverFallsBack")
def the_end_is_below_what_was_read(it):
    it.begin("a")
    it.poll(0, (0, "a"), leader_epoch=1)
    it.end(0, leader_epoch=1)
    it.final((0, "a"))


@breaks("TheEndNeverFallsBack")
def the_end_falls_while_nothing_goes_on(it):
    it.leader(1)
    it.tick(60)
    it.end(5)
    it.end(4)


@breaks("TheEndNeverFallsBack")
def a_record_of_a_later_epoch_is_below_what_was_told_as_the_end(it):
    it.send("a", 0)
    it.send("b", 1)
    it.poll(0, (0, "a"), (1, "b"), epochs=[(0, 1), (1, 3)])
    it.end(2, leader_epoch=2)
    it.final((0, "a"), (1, "b"))


@breaks("TheEndNeverFallsBack")
def what_a_replica_has_of_a_later_epoch_is_below_what_was_told_as_the_end(it):
    it.send("a", 0)
    it.end(1, leader_epoch=2)
    it.final((0, "a"))
    it.dump("1", (0, 3, "a"))


@legal
def a_tail_of_an_earlier_epoch_is_committed_by_a_leader_that_never_cut_it(it):
    """The replica was told of the leader in between, and was gone before it could compare their logs."""
    it.send("a", 0)
    it.end(1, leader_epoch=2)
    it.send("b", 1)
    it.poll(0, (0, "a"), (1, "b"), leader_epoch=3, epochs=[(0, 1)])
    it.final((0, "a"), (1, "b"))
    it.dump("1", (0, 1, "a"), (1, 1, "b"))


@legal
def the_end_is_where_a_leaders_epoch_begins_or_behind(it):
    it.send("a", 0)
    it.send("b", 1)
    it.send("c", 2)
    it.poll(0, (0, "a"), (1, "b"), (2, "c"), epochs=[(0, 1), (2, 3)])
    it.end(2, leader_epoch=2)
    it.end(2, leader_epoch=3)
    it.end(1, leader_epoch=1)
    it.final((0, "a"), (1, "b"), (2, "c"))
    it.dump("1", (0, 1, "a"), (1, 1, "b"), (2, 3, "c"))


@legal
def records_that_an_election_gave_up_bind_no_later_leader(it):
    it.send("a", 0, leader_epoch=1)
    it.poll(0, (0, "a"), leader_epoch=1, epochs=[(0, 1)])
    it.leader(2, is_unclean=True)
    it.end(0, leader_epoch=2)
    it.final()


@legal
def a_leader_that_was_replaced_tells_its_old_end(it):
    it.end(5, leader_epoch=2)
    it.end(4, leader_epoch=1)


@legal
def a_lower_end_was_asked_for_before(it):
    it.end(4, leader_epoch=1)
    it.end(5, leader_epoch=1)
    low, high = it.history.ends
    low.done_ns = high.done_ns + 1


@legal
def without_epochs_an_election_may_have_been(it):
    it.end(5)
    it.leader(2)
    it.end(4)


@legal
def the_end_falls_where_an_election_may_lose(it):
    it.end(5, leader_epoch=1)
    it.leader(2, is_unclean=True)
    it.end(3, leader_epoch=2)


# ---- L10 -----------------------------------------------------------------------------------------------


@breaks("EverythingIsSeen")
def an_acknowledged_record_is_never_read(it):
    it.send("a", 0)
    it.heal()
    it.poll(0)
    it.final((0, "a"))


@breaks("EverythingIsSeen")
def a_record_of_unknown_offset_behind_what_was_deleted_is_never_read(it):
    it.send("a", 0)
    it.deleted(1)
    it.send("b", 1)
    it.send("c", -1)
    it.heal()
    it.poll(1, (1, "b"))
    it.final((1, "b"), (2, "c"), start=1)


@breaks("EverythingIsSeen")
def a_record_is_read_too_late(it):
    it.send("a", 0)
    it.heal()
    it.tick(1_000)
    it.poll(0, (0, "a"))
    it.final((0, "a"))


@breaks("EverythingIsSeen")
def a_record_is_read_too_late_after_its_transaction_was_committed(it):
    it.send("a", 0, transaction="x")
    it.finish("x")
    it.heal()
    it.tick(1_000)
    it.poll(0, (0, "a"), isolation="committed")
    it.final((0, "a"), end=2)


@legal
def a_record_need_not_be_read_before_its_transaction_is_committed(it):
    it.heal()
    it.send("a", 0, transaction="x")
    it.tick(1_000)
    it.finish("x")
    it.poll(0, (0, "a"), isolation="committed")
    it.final((0, "a"), end=2)


@legal
def a_record_that_may_be_deleted_need_not_be_read(it):
    it.send("a", 0)
    it.deleted(1)
    it.heal()
    it.poll(1)
    it.final(start=1)


@legal
def faults_may_take_their_time(it):
    it.send("a", 0)
    it.tick(1_000)
    it.heal()
    it.poll(0, (0, "a"))
    it.final((0, "a"))


# ---- L11 -----------------------------------------------------------------------------------------------


@breaks("HealedClustersAnswer")
def a_healed_cluster_gives_no_answer(it):
    it.heal()
    it.tick(100)
    it.send("a", 0)
    it.begin("b")
    it.final((0, "a"))


@breaks("HealedClustersAnswer")
def a_healed_cluster_refuses_everything(it):
    it.heal()
    it.tick(100)
    it.answer(it.begin("a"), "fail")
    it.final()


@legal
def a_cluster_that_was_just_healed_needs_a_moment(it):
    it.heal()
    it.begin("a")
    it.final()


@breaks("ReplicasAreEqual")
def a_replica_lacks_the_last_record(it):
    it.send("a", 0)
    it.send("b", 1)
    it.final((0, "a"), (1, "b"))
    it.dump("1", (0, 0, "a"), (1, 0, "b"))
    it.dump("2", (0, 0, "a"))


@breaks("ReplicasAreEqual")
def replicas_differ_in_bytes(it):
    it.send("a", 0)
    it.final((0, "a"))
    it.dump("1", (0, 0, "a"), digests=["x"])
    it.dump("2", (0, 0, "a"), digests=["y"])


@breaks("ReplicasAreEqual")
def replicas_differ_in_epochs(it):
    it.send("a", 0)
    it.final((0, "a"))
    it.dump("1", (0, 0, "a"))
    it.dump("2", (0, 1, "a"))


@breaks("ReplicasAreEqual")
def all_replicas_lack_what_is_read(it):
    it.answer(it.begin("a"), "info")
    it.final((0, "a"))
    it.dump("1", end=0)
    it.dump("2", end=0)


@breaks("ReplicasAreEqual")
def a_replica_does_not_know_that_its_end_is_committed(it):
    it.send("a", 0)
    it.final((0, "a"))
    it.dump("1", (0, 0, "a"), high_watermark=0)


@breaks("ReplicasAreEqual")
def a_replica_has_an_uncommitted_tail(it):
    it.send("a", 0)
    it.send("b", 1)
    it.begin("c", session="other")
    it.final((0, "a"), (1, "b"))
    it.dump("1", (0, 0, "a"), (1, 0, "c"), high_watermark=1)


@breaks("ReplicasAreEqual")
def epochs_fall_along_a_log(it):
    it.send("a", 0)
    it.send("b", 1)
    it.final((0, "a"), (1, "b"))
    it.dump("1", (0, 3, "a"), (1, 2, "b"))


@legal
def replicas_begin_at_different_offsets(it):
    it.send("a", 0)
    it.send("b", 1)
    it.deleted(1)
    it.final((1, "b"), start=1)
    it.dump("1", (0, 0, "a"), (1, 0, "b"), digests=["x", "y"])
    it.dump("2", (1, 0, "b"), start=1, digests=["y"])


@legal
def replicas_compact_in_their_own_time(it):
    it.topic(is_created=True, is_compacted=True)
    it.send("a", 0, key="k")
    it.send("b", 1, key="k")
    it.final((1, "b"))
    it.dump("1", (0, 0, "a"), (1, 0, "b"), digests=["x", "y"])
    it.dump("2", (1, 0, "b"), digests=["z"])
