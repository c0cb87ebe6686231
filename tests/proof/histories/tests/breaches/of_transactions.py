"""T1 to T7: transactions are whole, readers of committed records see no others, pipelines copy once."""

from histories.tests.breaches.registry import breaks, legal

# ---- T1 ------------------------------------------------------------------------------------------------


@breaks("TransactionsAreAtomic")
def a_committed_transaction_lacks_a_record_that_was_not_acknowledged(it):
    it.send("a", 0, transaction="x")
    it.answer(it.begin("b", transaction="x"), "info")
    it.finish("x")
    it.final((0, "a"))


@breaks("TransactionsAreAtomic")
def a_record_of_an_aborted_transaction_is_there(it):
    it.send("a", 0, transaction="x")
    it.finish("x", "abort")
    it.final((0, "a"))


@breaks("TransactionsAreAtomic")
def a_record_of_a_transaction_that_nobody_ended_is_there(it):
    it.send("a", 0, transaction="x")
    it.final((0, "a"))


@breaks("TransactionsAreAtomic")
def a_record_is_there_of_a_transaction_whose_commit_was_refused(it):
    it.send("a", 0, transaction="x")
    it.finish("x", "commit", "fail")
    it.final((0, "a"))


@breaks("TransactionsAreAtomic")
def a_transaction_of_which_nobody_knows_is_torn(it):
    it.send("a", 0, transaction="x")
    it.send("b", 1, transaction="x")
    it.finish("x", "commit", "info")
    it.final((0, "a"))


@legal
def transactions_of_which_nobody_knows_are_there_or_not(it):
    it.send("a", 0, transaction="x")
    it.finish("x", "commit", "info")
    it.send("b", 2, transaction="y")
    it.finish("y", "commit", "info")
    it.final((2, "b"))


@legal
def a_refused_record_of_a_committed_transaction_is_not_there(it):
    it.send("a", 0, transaction="x")
    it.answer(it.begin("b", transaction="x"), "fail")
    it.finish("x")
    it.final((0, "a"))


@legal
def a_record_of_a_committed_transaction_was_deleted(it):
    it.send("a", 0, transaction="x")
    it.send("b", 1, transaction="x")
    it.finish("x")
    it.deleted(1)
    it.final((1, "b"), start=1)


@legal
def replicas_keep_what_was_aborted(it):
    it.send("a", 0, transaction="x")
    it.finish("x", "abort")
    it.send("b", 2)
    it.final((2, "b"))
    it.dump("1", (0, 0, "a"), (2, 0, "b"))


# ---- T2 ------------------------------------------------------------------------------------------------


@breaks("NothingUncommittedIsRead")
def a_reader_is_given_a_record_of_an_open_transaction(it):
    it.send("a", 0, transaction="x")
    it.poll(0, (0, "a"), isolation="committed")
    it.finish("x")
    it.final((0, "a"))


@breaks("NothingUncommittedIsRead")
def a_reader_is_given_a_record_of_an_aborted_transaction(it):
    it.send("a", 0, transaction="x")
    it.finish("x", "abort")
    it.poll(0, (0, "a"), isolation="committed")
    it.final()


@breaks("ReadsAreRepeatable")
def a_reader_is_given_a_record_that_was_not_committed_after_all(it):
    it.send("a", 0, transaction="x")
    it.finish("x", "commit", "info")
    it.poll(0, (0, "a"), isolation="committed")
    it.final()


@legal
def readers_of_uncommitted_records_are_given_all(it):
    it.send("a", 0, transaction="x")
    it.poll(0, (0, "a"), isolation="uncommitted")
    it.finish("x", "abort")
    it.end(0)
    it.final(end=2)


@legal
def a_reader_is_given_a_record_while_its_commit_is_under_way(it):
    it.send("a", 0, transaction="x")
    it.finish("x")
    it.poll(0, (0, "a"), isolation="committed")
    it.history.finishes[0].done_ns = it.tick()
    it.final((0, "a"))


# ---- T3 ------------------------------------------------------------------------------------------------


def _a_record_behind_a_transaction_is_read(it, *, is_open, isolation="committed"):
    it.send("a", 0, transaction="x")
    it.send("b", 1)
    if not is_open:
        it.finish("x", "abort")
    it.poll(0, (1, "b"), isolation=isolation)
    if is_open:
        it.finish("x", "abort")
    it.final((1, "b"))


@breaks("ReadersStopAtTheLastStableOffset")
def a_reader_passes_an_open_transaction(it):
    _a_record_behind_a_transaction_is_read(it, is_open=True)


@legal
def a_reader_passes_an_aborted_transaction(it):
    _a_record_behind_a_transaction_is_read(it, is_open=False)


@legal
def a_reader_of_uncommitted_records_passes_an_open_transaction(it):
    _a_record_behind_a_transaction_is_read(it, is_open=True, isolation="uncommitted")


@legal
def a_reader_passes_a_transaction_that_its_coordinator_may_have_ended(it):
    it.send("a", 0, transaction="x")
    it.send("b", 1)
    it.poll(0, (1, "b"), isolation="committed")
    it.finish("x", "commit", "fail")
    it.final((1, "b"))


# ---- T4 ------------------------------------------------------------------------------------------------


@breaks("FencedProducersHaveNoEffect")
def a_fenced_producer_commits(it):
    it.init("old")
    it.send("a", 0, session="old", transaction="x")
    it.init("new")
    it.finish("x")
    it.final((0, "a"))


@breaks("FencedProducersHaveNoEffect")
def a_fenced_producer_is_acknowledged(it):
    it.init("old")
    it.init("new")
    it.send("a", 0, session="old", transaction="x")
    it.finish("x", "abort", "fail")
    it.final(end=2)


@legal
def a_producer_ends_its_transaction_before_it_is_fenced(it):
    it.init("old")
    it.send("a", 0, session="old", transaction="x")
    it.finish("x")
    it.init("new")
    it.answer(it.begin("b", session="old", transaction="y"), "info")
    it.finish("y", "commit", "fail")
    it.final((0, "a"))


@legal
def producers_of_other_transactional_ids_fence_nobody(it):
    it.init("old")
    it.init("other", transactional_id="other")
    it.init("new", "info")
    it.send("a", 0, session="old", transaction="x")
    it.finish("x")
    it.final((0, "a"))


# ---- T5 ------------------------------------------------------------------------------------------------


def _two_records_are_copied(it, *copies):
    """``copies``: of which record, and how its transaction ends."""
    it.send("a", 0)
    it.send("b", 1)
    there = []
    for offset, (source, how) in enumerate(copies):
        it.send(f"{source}-{offset}", offset, topic="copied", source=source, transaction=f"x-{offset}")
        it.finish(f"x-{offset}", how)
        if how == "commit":
            there.append((offset, f"{source}-{offset}"))
    it.heal()
    it.final((0, "a"), (1, "b"))
    it.final(*there, topic="copied")


@breaks("PipelinesCopyOnce")
def a_record_is_copied_twice(it):
    _two_records_are_copied(it, ("a", "commit"), ("b", "commit"), ("a", "commit"))


@breaks("PipelinesCopyOnce")
def a_record_is_not_copied(it):
    _two_records_are_copied(it, ("a", "commit"), ("b", "abort"))


@breaks("PipelinesCopyOnce")
def a_record_of_an_aborted_transaction_is_copied(it):
    it.send("a", 0, transaction="x")
    it.finish("x", "abort")
    it.send("a-0", 0, topic="copied", source="a")
    it.heal()
    it.final()
    it.final((0, "a-0"), topic="copied")


@legal
def a_copy_is_aborted_and_made_again(it):
    _two_records_are_copied(it, ("a", "abort"), ("b", "commit"), ("a", "commit"))


# ---- T7 ------------------------------------------------------------------------------------------------


@breaks("NothingHangs")
def committed_records_end_before_the_log_does(it):
    it.send("a", 0)
    it.send("b", 1, transaction="x")
    it.final((0, "a"), high_watermark=2)


@legal
def committed_records_end_where_the_log_does(it):
    it.send("a", 0)
    it.final((0, "a"), end=3, high_watermark=3)
