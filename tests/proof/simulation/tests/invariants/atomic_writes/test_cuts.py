"""The rules of cuts fire where a task was shown something wrong, and nowhere else."""

import pytest

from simulation.invariants.atomic_writes.cuts import CutRules, Read
from simulation.invariants.invariant import Violation
from simulation.truth import Entry
from sparklog.client.transactions.cut import Cut
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.write_outcomes import EndOutcome

NOTHING = Read(0, ())
A_CUT = Cut({}, frozenset())


@pytest.fixture
def other(log_of):
    return log_of("flights")


@pytest.fixture
def rules(write_rules, log, other):
    return CutRules(write_rules, {one.truth.topic_partition: one.truth for one in (log, other)})


@pytest.fixture
def begun(rules):
    """A read of both partitions."""
    return lambda: rules.begin("read", list(rules.truths))


def committed(rules, logs, *winners):
    """The driver of version 1 has its winners committed in these logs, and is told so."""
    commit = rules.writes.on_wish("app", 1, "run", [one.producer_id for one in winners])
    for log in logs:
        for one in winners:
            log.takes_marker(one, is_commit=True)
    rules.writes.on_ended("app", 1, commit, EndOutcome.COMMITTED, -1)


def read(rules, execution, log, *entries, start=0):
    rules.on_read(execution, log.truth.topic_partition, Read(start, entries))


def broken(rule):
    return pytest.raises(Violation, match=f"^{rule}: ")


def test_a_read_of_everything_that_was_committed_breaks_no_rule(rules, log, other, joined, begun):
    member = joined(0)
    rows = [one.takes_rows(member) for one in (log, other)]
    committed(rules, (log, other), member)
    execution = begun()
    rules.on_cut(execution, A_CUT)
    read(rules, execution, log, rows[0])
    read(rules, execution, log, rows[0])
    read(rules, execution, other, rows[1])
    assert rules.writes.marks.counts["a batch read saw an atomic write"]


def test_a_read_that_begins_before_a_write_is_answered_may_show_nothing_of_it(
    rules, log, other, joined, begun
):
    member, execution = joined(0), begun()
    for one in (log, other):
        one.takes_rows(member)
    committed(rules, (log, other), member)
    for one in (log, other):
        read(rules, execution, one)


def test_a_read_that_shows_half_of_a_write_is_found(rules, log, other, joined, begun):
    member, execution = joined(0), begun()
    rows = [one.takes_rows(member) for one in (log, other)]
    committed(rules, (log, other), member)
    read(rules, execution, log, rows[0])
    with broken("CutsAreWhole"):
        read(rules, execution, other)


def test_a_read_that_shows_one_winner_of_two_is_found(rules, log, other, joined, begun):
    first, second, execution = joined(0), joined(1), begun()
    rows = log.takes_rows(first)
    other.takes_rows(second)
    committed(rules, (log, other), first, second)
    read(rules, execution, log, rows)
    with broken("CutsAreWhole"):
        read(rules, execution, other)


def test_a_read_without_what_was_answered_before_it_began_is_found(rules, log, other, joined, begun):
    member = joined(0)
    log.takes_rows(member)
    committed(rules, (log,), member)
    execution = begun()
    read(rules, execution, log)
    with broken("AnsweredCommitsAreInLaterCuts"):
        read(rules, execution, other)


@pytest.mark.parametrize("end", [None, False])
def test_a_read_that_shows_rows_that_are_open_or_aborted_is_found(rules, log, other, joined, begun, end):
    member, execution = joined(0), begun()
    rows = log.takes_rows(member)
    if end is False:
        rules.writes.on_abort("app", 1, "run")
        log.takes_marker(member, is_commit=False)
    read(rules, execution, log, rows)
    with broken("NothingUnfinishedIsShown"):
        read(rules, execution, other)


def test_two_tasks_that_know_two_cuts_are_found(rules, begun):
    execution = begun()
    rules.on_cut(execution, A_CUT)
    rules.on_cut(execution, Cut({}, frozenset()))
    with broken("TasksReadOneCut"):
        rules.on_cut(execution, Cut({}, frozenset({1})))


def test_a_retry_that_reads_something_else_is_found(rules, log, begun):
    execution = begun()
    read(rules, execution, log)
    with broken("RetriesReadTheSame"):
        read(rules, execution, log, Entry(0, 1, 0, -1, -1, -1, 7))


def test_a_retry_behind_a_deletion_may_lack_what_was_deleted(rules, log, begun):
    execution, entries = begun(), [Entry(at, at + 1, 0, -1, -1, -1, 7) for at in range(2)]
    read(rules, execution, log, *entries)
    read(rules, execution, log, entries[1], start=1)


def test_a_read_by_an_answer_of_a_leader_that_was_replaced_need_not_be_whole(
    rules, log, other, joined, begun
):
    member, execution = joined(0), begun()
    rows = [one.takes_rows(member) for one in (log, other)]
    committed(rules, (log, other), member)
    other.truth.state = PartitionState(leader=1, leader_epoch=4, isr=(1,), replicas=(1,))
    rules.on_answer(execution, other.truth.topic_partition, 3)
    read(rules, execution, log, rows[0])
    read(rules, execution, other)


@pytest.mark.parametrize("what", ["an election loses records", "a topic is deleted"])
def test_nothing_is_judged_of_partitions_that_are_not_what_they_were(
    rules, transactions, log, other, joined, begun, what
):
    member, execution = joined(0), begun()
    rows = [one.takes_rows(member) for one in (log, other)]
    committed(rules, (log, other), member)
    if what == "an election loses records":
        transactions.on_loss(other.truth)
    else:
        del rules.truths[other.truth.topic_partition]
    read(rules, execution, log, rows[0])
    read(rules, execution, other)
