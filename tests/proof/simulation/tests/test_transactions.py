"""Transactions in whole runs: calm ones, troubled ones, and what is checked of their coordinators."""

from dataclasses import replace

import pytest

from simulation.clients.transactions.producer import TransactionalProducer
from simulation.clients.transactions.script import Wait
from simulation.invariants.coordinators import CoordinatorsAreAReplay
from simulation.plans.plan import draw_plan
from simulation.plans.transactions import (
    ALL_TRANSACTION_CHURN,
    WITH_TRANSACTIONS,
    draw_transactions,
    transactional_id,
)
from simulation.run import simulate
from sparklog.core.group.applied import AppliedState
from sparklog.core.replication.watermarks import Watermarks
from sparklog.core.transaction_coordinator.transaction_machine import TransactionMachine

SEEDS = [seed for seed in range(1, 60) if draw_plan(seed).transactions]


def calm(seed, **changes):
    """The plan of a seed with transactions; the first id is changed, and nothing goes wrong."""
    plan = draw_plan(seed, without_faults=True)
    return replace(plan, transactions=(replace(plan.transactions[0], **changes), *plan.transactions[1:]))


@pytest.mark.parametrize("seed", SEEDS[1:4])
def test_transactions_that_nothing_happens_to_break_no_rule_and_come_to_rest(seed):
    outcome = simulate(calm(seed, timeout_ms=3_000, abort_share=0.5))
    assert outcome.violation is None
    assert outcome.marks["a transaction was committed"]
    assert outcome.marks["a transaction was aborted"]
    assert outcome.marks["a reader passed over an aborted transaction"]


@pytest.mark.scenario("S11", "Transactional copies under hard bounces: exactly one committed copy (KIP-98).")
def test_a_pipeline_commits_its_position_with_what_it_writes():
    outcome = simulate(calm(SEEDS[0], timeout_ms=3_000, is_pipeline=True))
    assert outcome.violation is None
    assert outcome.marks["a pipeline went on"]


def test_a_pipeline_that_is_told_of_positions_that_are_not_committed_is_noticed(monkeypatch):
    monkeypatch.setattr(AppliedState, "apply_pending", lambda self, record, producer_id: self.apply(record))
    violation = simulate(calm(SEEDS[0], abort_share=0.5, is_pipeline=True)).violation
    assert violation.invariant == "PositionsAreCommitted"


def test_a_producer_that_is_replaced_goes_on_until_it_is_fenced():
    outcome = simulate(calm(SEEDS[0], churn=("replace",), churn_ms=300.0, interval_ms=60.0))
    assert outcome.violation is None
    assert outcome.marks["a producer was replaced in a transaction"]
    assert outcome.marks["a transactional producer was fenced"]


def test_what_a_dead_producer_left_open_is_aborted_in_another_epoch():
    changes = {"churn": ("die",), "churn_ms": 200.0, "interval_ms": 20.0, "timeout_ms": 400}
    outcome = simulate(calm(SEEDS[1], **changes))
    assert outcome.violation is None
    assert outcome.marks["a producer died in a transaction"]
    assert outcome.marks["a transaction was aborted in another epoch"]


def test_a_producer_that_never_ends_what_it_began_keeps_a_cluster_from_rest(monkeypatch):
    def end(self, transaction, *, wants_commit):
        while True:
            yield Wait(100)

    monkeypatch.setattr(TransactionalProducer, "_end", end)
    violation = simulate(calm(SEEDS[0], timeout_ms=3_000)).violation
    assert violation.invariant == "ComesToRest"
    assert "has committed nothing since all was mended" in violation.what


@pytest.mark.scenario("S54")
def test_a_last_stable_offset_that_is_the_high_watermark_is_found(monkeypatch):
    monkeypatch.setattr(Watermarks, "_stable_offset", lambda self: self.high_watermark)
    violation = simulate(calm(SEEDS[0])).violation
    assert violation.invariant == "LastStableIsAsTheLogSays"


def test_a_coordinator_that_applies_something_else_than_its_log_is_found(monkeypatch):
    monkeypatch.setattr(TransactionMachine, "replay", lambda self, record: None)
    violation = simulate(calm(SEEDS[0])).violation
    assert violation.invariant == CoordinatorsAreAReplay.__name__


def test_a_seed_with_transactions_is_the_same_run_twice():
    plan = draw_plan(SEEDS[1])
    first, second = simulate(plan, is_told=True), simulate(plan, is_told=True)
    assert first.violation is None
    assert first.digest == second.digest


def test_some_seeds_have_transactions_and_links_to_their_producers_fail():
    plans = [draw_plan(seed) for seed in range(1, 501)]
    having = [plan for plan in plans if plan.transactions]
    drawn = [seed for seed in range(1, 501) if draw_transactions(seed)]
    assert 0.8 * WITH_TRANSACTIONS < len(drawn) / len(plans) < 1.2 * WITH_TRANSACTIONS
    names = {transactional_id(number) for plan in having for number in range(len(plan.transactions))}
    ends = {end for plan in having for fault in plan.faults for end in (fault.target, fault.other)}
    assert names <= ends
    churn = {kind for plan in having for one in plan.transactions for kind in one.churn}
    assert churn == set(ALL_TRANSACTION_CHURN)


def test_what_a_seed_without_transactions_draws_knows_nothing_of_transactions():
    plans = [draw_plan(seed) for seed in range(1, 60) if seed not in SEEDS]
    for plan in (plan for plan in plans if not plan.has_transaction_states):
        assert not any(name.startswith("transaction.") for name in plan.settings)
