"""The rules of atomic writes fire where a marker or an answer is wrong, and nowhere else."""

import pytest

from simulation.invariants.invariant import Violation
from sparklog.core.write_coordinator.records import Head
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.write_outcomes import EndOutcome


@pytest.fixture
def rules(write_rules):
    return write_rules


def commit(rules, *winners, version=1, run="run"):
    return rules.on_wish("app", version, run, [one.producer_id for one in winners])


def a_head(state, **more):
    """Of version 1 of the app."""
    return Head(
        state=state,
        version=1,
        write_number=1,
        committed_version=0,
        timeout_ms=3_000,
        is_plain=False,
        start_ms=0,
        last_update_ms=0,
        **more,
    )


def broken(rule):
    return pytest.raises(Violation, match=f"^{rule}: ")


def test_a_write_whose_winners_alone_become_visible_breaks_no_rule(rules, transactions, log, log_of, joined):
    winner, loser, other = joined(0), joined(1), log_of("flights")
    for one in (log, other):
        one.takes_rows(winner)
        one.takes_rows(loser)
    asked = commit(rules, winner)
    for one in (log, other):
        one.takes_marker(loser, is_commit=False)
        one.takes_marker(winner, is_commit=True)
    rules.on_ended("app", 1, asked, EndOutcome.COMMITTED, -1)
    transactions.check_what_is_owed([log.truth, other.truth])


def test_two_attempts_are_never_told_the_same_producer_id(rules, joined):
    joined(0)
    with broken("MemberIdsAreUnique"):
        joined(0, run="another run")


def test_nor_after_an_election_that_lost_the_first_one(transactions, joined, log_of):
    joined(0)
    transactions.on_loss(log_of("__transaction_state").truth)
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


def test_a_commit_that_was_answered_is_visible_everywhere(rules, log, log_of, joined):
    member, other = joined(0), log_of("flights")
    for one in (log, other):
        one.takes_rows(member)
    asked = commit(rules, member)
    log.takes_marker(member, is_commit=True)
    with broken("AnsweredCommitsAreVisible"):
        rules.on_ended("app", 1, asked, EndOutcome.COMMITTED, -1)


def test_rows_in_a_topic_that_was_deleted_need_not_be_visible(rules, log, joined):
    member = joined(0)
    log.takes_rows(member)
    rules.is_there = lambda where: False
    rules.on_ended("app", 1, commit(rules, member), EndOutcome.COMMITTED, -1)


@pytest.mark.parametrize("topic", ["quakes", "__transaction_state"])
def test_nothing_is_judged_after_an_election_that_may_have_lost_it(
    rules, transactions, log, log_of, joined, topic
):
    member = joined(0)
    log.takes_rows(member)
    asked = commit(rules, member)
    transactions.on_loss(log.truth if topic == "quakes" else log_of(topic).truth)
    rules.on_ended("app", 1, asked, EndOutcome.COMMITTED, -1)


def test_a_winner_is_not_aborted_where_another_one_is_visible(rules, log, joined):
    first, second = joined(0), joined(1)
    for one in (first, second):
        log.takes_rows(one)
    commit(rules, first, second)
    log.takes_marker(first, is_commit=True)
    rules.on_abort("app", 1, "run")
    with broken("VersionsAreVisibleOnce"):
        log.takes_marker(second, is_commit=False)


def test_a_version_does_not_become_visible_behind_a_later_one(rules, log, joined):
    late, early = joined(0, version=2), joined(0, version=1)
    for one in (late, early):
        log.takes_rows(one)
        commit(rules, one, version=one.attempt.version)
    log.takes_marker(late, is_commit=True)
    with broken("VersionsRise"):
        log.takes_marker(early, is_commit=True)


@pytest.mark.parametrize("outcome", [EndOutcome.NOT_OPEN, EndOutcome.LOST_MEMBER, EndOutcome.LOST_TOPIC])
@pytest.mark.parametrize("is_told_first", [True, False])
def test_nothing_of_a_commit_that_was_refused_is_visible(rules, log, joined, outcome, is_told_first):
    member = joined(0)
    log.takes_rows(member)
    asked = commit(rules, member)
    steps = [
        lambda: rules.on_ended("app", 1, asked, outcome, -1),
        lambda: log.takes_marker(member, is_commit=True),
    ]
    first, second = steps if is_told_first else reversed(steps)
    first()
    with broken("VersionsAreVisibleOnce"):
        second()


def test_nothing_of_a_run_that_was_aborted_is_visible(rules, log, joined):
    member = joined(0)
    log.takes_rows(member)
    commit(rules, member)
    rules.on_abort("app", 1, "run")
    rules.on_aborted("app", 1, "run")
    with broken("VersionsAreVisibleOnce"):
        log.takes_marker(member, is_commit=True)


def test_a_version_that_was_committed_without_rows_has_none(rules, log, joined):
    member = joined(0, run="another run")
    log.takes_rows(member)
    rules.on_ended("app", 1, commit(rules), EndOutcome.COMMITTED, -1)
    commit(rules, member, run="another run")
    with broken("VersionsAreVisibleOnce"):
        log.takes_marker(member, is_commit=True)


class TestPassingOver:
    """A task or a driver of version 1 is told that a version is committed."""

    def test_a_version_that_is_visible_may_be_passed_over(self, rules, log, joined):
        member = joined(0)
        log.takes_rows(member)
        commit(rules, member)
        log.takes_marker(member, is_commit=True)
        rules.on_nothing_to_write("app", 1, 1)

    def test_one_before_a_version_without_rows_may_be(self, rules):
        commit(rules, version=2)
        rules.on_nothing_to_write("app", 1, 2)

    @pytest.mark.parametrize("told", [0, 1, 2])
    def test_no_other_one_may_be(self, rules, log, joined, told):
        member = joined(0)
        log.takes_rows(member)
        commit(rules, member)
        commit(rules, version=0)
        with broken("OnlyWhatIsCommittedIsPassedOver"):
            rules.on_nothing_to_write("app", 1, told)


class TestAborts:
    """A member that has written is aborted."""

    @pytest.fixture(autouse=True)
    def _writes(self, rules, log, clock, joined):
        self.rules, self.log, self.clock, self.joined = rules, log, clock, joined
        self.member = joined(0)
        log.takes_rows(self.member)

    def abort(self):
        self.log.takes_marker(self.member, is_commit=False)

    def test_it_is_not_without_a_reason(self):
        commit(self.rules, self.member)
        with broken("NobodyElseEndsIt"):
            self.abort()

    def test_it_may_have_withdrawn(self):
        self.member.has_withdrawn = True
        self.abort()

    def test_its_driver_may_have_aborted_its_run(self):
        self.rules.on_abort("app", 1, "run")
        self.abort()

    def test_another_run_is_no_reason(self):
        self.rules.on_abort("app", 1, "another run")
        with broken("NobodyElseEndsIt"):
            self.abort()

    def test_another_member_may_have_won(self):
        commit(self.rules, self.joined(1))
        self.abort()

    def test_a_later_version_may_have_begun(self):
        self.rules.on_asked("app", 2)
        self.abort()

    def test_it_may_have_been_silent(self):
        self.clock.now_us = 1_000_000
        self.abort()

    def test_it_may_not_have_been_silent_for_less(self):
        self.clock.now_us = 800_000
        with broken("NobodyElseEndsIt"):
            self.abort()

    def test_it_may_be_silent_once_it_has_finished(self):
        self.member.is_finished, self.clock.now_us = True, 1_000_000
        with broken("NobodyElseEndsIt"):
            self.abort()

    def test_its_whole_write_may_have_been_silent(self):
        self.member.is_finished, self.clock.now_us = True, 3_000_000
        self.abort()

    def test_its_whole_write_is_not_while_another_member_speaks(self):
        self.member.is_finished, self.clock.now_us = True, 3_000_000
        self.joined(1).spoke_us = 1_000_000
        with broken("NobodyElseEndsIt"):
            self.abort()


class TestDecisions:
    """A marker, and what the log of ``__transaction_state`` says in a later step."""

    @pytest.fixture(autouse=True)
    def _marks(self, rules, clock, log, joined):
        self.rules, self.clock, self.log = rules, clock, log
        self.winner, self.loser = joined(0), joined(1)
        for one in (self.winner, self.loser):
            log.takes_rows(one)
        commit(rules, self.winner)

    def looks(self):
        self.clock.now_us += 1
        self.rules.on_commit(self.log.truth, None, [])

    def test_what_was_decided_breaks_no_rule(self):
        self.rules._decisions._take_head(a_head(AppState.PREPARED_COMMIT, winners=frozenset({0})))
        self.log.takes_marker(self.winner, is_commit=True)
        self.log.takes_marker(self.loser, is_commit=False)
        self.looks()

    def test_a_decision_may_be_seen_later_in_the_step_of_its_marker(self):
        self.log.takes_marker(self.winner, is_commit=True)
        self.rules._decisions._take_head(a_head(AppState.PREPARED_COMMIT, winners=frozenset({0})))
        self.looks()

    @pytest.mark.parametrize(
        "head",
        [
            pytest.param(lambda: a_head(AppState.OPEN), id="an open write"),
            pytest.param(lambda: a_head(AppState.PREPARED_COMMIT), id="without winners"),
            pytest.param(lambda: a_head(AppState.PREPARED_ABORT), id="an aborted write"),
        ],
    )
    def test_a_winner_without_a_decision_is_found(self, head):
        self.rules._decisions._take_head(head())
        self.log.takes_marker(self.winner, is_commit=True)
        with broken("MarkersFollowTheirDecision"):
            self.looks()

    def test_a_loser_is_one_by_its_run_too(self):
        self.rules._decisions._take_head(a_head(AppState.OPEN, aborted_runs=("run",)))
        self.log.takes_marker(self.loser, is_commit=False)
        self.looks()

    def test_a_loser_without_a_decision_is_found(self):
        self.rules._decisions._take_head(a_head(AppState.OPEN, aborted_runs=("another run",)))
        self.log.takes_marker(self.loser, is_commit=False)
        with broken("MarkersFollowTheirDecision"):
            self.looks()
