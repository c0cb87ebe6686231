"""The rules of atomic writes fire where a marker or an answer is wrong, and nowhere else."""

import uuid
from types import SimpleNamespace

import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.transactions import TransactionRules
from simulation.invariants.writes import Attempt, WriteRules
from simulation.marks import Marks
from simulation.truth import Entry, PartitionTruth, TransactionPart
from sparklog.model.ids import TopicPartition
from sparklog.model.transaction_end import TransactionEnd
from sparklog.model.write_ids import producer_id_of

RECORDS = TransactionPart(is_control=False, has_records=True, end=None)


class Log:
    """A partition's committed log; each batch has one record."""

    def __init__(self, rules, topic="quakes"):
        self.truth = PartitionTruth(TopicPartition(topic, 0), uuid.UUID(int=1))
        self.parts = {}
        self._rules = rules

    def part(self, entry):
        return self.parts[entry.base_offset]

    def _takes(self, part, producer_id, sequence):
        at = len(self.truth.committed)
        entry = Entry(at, at + 1, 0, producer_id, 0, sequence, 0)
        self.parts[at] = part
        self.truth.committed.append(entry)
        self._rules.on_replica(self.truth, self, SimpleNamespace(is_leader=True), [entry])
        self._rules.on_commit(self.truth, self, [entry])
        return entry

    def takes_rows(self, member):
        """Of a member, which is told so."""
        self._rules.on_batch(member, Entry(0, 1, -1, member.producer_id, 0, 0, 0))
        entry = self._takes(RECORDS, member.producer_id, 0)
        self._rules.on_acknowledged(member, self.truth, entry)

    def takes_marker(self, member, *, is_commit):
        end = TransactionEnd(is_commit, 0)
        self._takes(TransactionPart(is_control=True, has_records=True, end=end), member.producer_id, -1)


@pytest.fixture
def clock():
    return SimpleNamespace(now_us=0)


@pytest.fixture
def transactions(clock):
    return TransactionRules(lambda: clock.now_us, Marks())


@pytest.fixture
def rules(transactions):
    return WriteRules(transactions, Marks())


@pytest.fixture
def log(transactions):
    return Log(transactions)


@pytest.fixture
def joined(rules):
    """A member more of a run's write."""

    def join(number, *, version=1, run="run"):
        attempt = Attempt("app", version, run, f"{run} attempt {number}")
        return rules.on_member(attempt, producer_id_of(version, number))

    return join


def commit(rules, *winners, version=1, run="run"):
    return rules.on_commit("app", version, run, [one.producer_id for one in winners])


def broken(rule):
    return pytest.raises(Violation, match=f"^{rule}: ")


def test_a_write_whose_winners_alone_become_visible_breaks_no_rule(rules, transactions, log, joined):
    winner, loser, other = joined(0), joined(1), Log(transactions, "flights")
    for one in (log, other):
        one.takes_rows(winner)
        one.takes_rows(loser)
    asked = commit(rules, winner)
    for one in (log, other):
        one.takes_marker(loser, is_commit=False)
        one.takes_marker(winner, is_commit=True)
    rules.on_committed("app", 1, asked)
    transactions.check_what_is_owed([log.truth, other.truth])


def test_two_attempts_are_never_told_the_same_producer_id(rules, joined):
    joined(0)
    with broken("MemberIdsAreUnique"):
        joined(0, run="another run")


def test_nobody_makes_a_loser_visible(rules, log, joined):
    winner, loser = joined(0), joined(1)
    log.takes_rows(loser)
    commit(rules, winner)
    with broken("NobodyElseEndsIt"):
        log.takes_marker(loser, is_commit=True)


def test_what_two_commits_want_of_one_version_is_not_visible_together(rules, log, joined):
    first, second = joined(0), joined(1, run="another run")
    for one in (first, second):
        log.takes_rows(one)
        commit(rules, one, run=one.attempt.run)
    log.takes_marker(first, is_commit=True)
    with broken("VersionsAreVisibleOnce"):
        log.takes_marker(second, is_commit=True)


@pytest.mark.parametrize("ended", [None, False])
def test_a_commit_that_was_answered_is_visible_everywhere(rules, transactions, log, joined, ended):
    member, other = joined(0), Log(transactions, "flights")
    log.takes_rows(member)
    if ended is None:
        other.takes_rows(member)
    asked = commit(rules, member)
    log.takes_marker(member, is_commit=ended is None)
    with broken("AnsweredCommitsAreVisible"):
        rules.on_committed("app", 1, asked)


@pytest.mark.parametrize("topic", ["quakes", "__transaction_state"])
def test_nothing_is_judged_after_an_election_that_may_have_lost_it(rules, transactions, log, joined, topic):
    member = joined(0)
    log.takes_rows(member)
    asked = commit(rules, member)
    transactions.on_loss(log.truth if topic == "quakes" else Log(transactions, topic).truth)
    rules.on_committed("app", 1, asked)
