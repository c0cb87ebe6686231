"""The table of a slot's states: each row by facts of the machine, and nothing outside of it."""

import ast
from pathlib import Path

import pytest

from sparklog.core.controller.operations.advance import CRASH_LOOP
from sparklog_runtime.supervision import slot_machine
from sparklog_runtime.supervision.slot_machine import NO_EXECUTOR_S, Failure, SlotMachine
from sparklog_runtime.supervision.slot_states import (
    LAUNCHES_NOTHING,
    ROWS,
    TABLE,
    Do,
    Fact,
    SlotState,
)

S = SlotState
NOW = 1_000.0
PID = 7


def run_a_job(machine, times=1):
    """Jobs that end at once, and serve nothing."""
    for _ in range(times):
        machine.launches(machine.obeyed_starts, NOW)
        machine.job_ended(None, NOW)


def in_state(state):
    """A machine that facts alone have led to ``state``; its job runs, if it has one."""
    machine = SlotMachine()
    if state in (S.CRASH_LOOP, S.TRYING):
        run_a_job(machine, times=5)
    machine.launches(0, NOW)
    if state is S.NO_EXECUTOR:
        machine.looked_at(NOW + NO_EXECUTOR_S)
    if state in (S.STARTING, S.RECOVERING, S.SERVING, S.CUT, S.STOPPING, S.TRYING):
        machine.said_hello(PID)
    if state is S.RECOVERING:
        machine.recovers()
    if state in (S.SERVING, S.CUT, S.STOPPING):
        machine.registered(NOW)
    if state is S.CUT:
        assert machine.was_cut()
    if state in (S.STOPPING, S.STOPPED):
        machine.wished(False)
    if state is S.ENDING:
        machine.application_stops()
    assert machine.state is state
    return machine


def fail_often(machine):
    machine.starts.short = 5
    machine.job_ended(None, NOW)


def be_buried(machine):
    machine.buried_pid = PID
    return machine.said_hello(PID)


def die(machine):
    machine.is_registered = True
    return machine.ended(NOW)[1]


def end(machine):
    machine.said_bye = True
    return machine.ended(NOW)[1]


def be_decommissioned(machine):
    return machine.decommissioned(machine.job, "its executor is decommissioned")


def be_wished(machine):
    machine.is_wished = False
    return machine.wished(True)


def ask_for_a_start(machine):
    machine.job_ended(None, NOW)
    return machine.launches(machine.obeyed_starts + 1, NOW)


BY_FACT = {
    Fact.WAITED: lambda machine: machine.looked_at(NOW + NO_EXECUTOR_S),
    Fact.JOB_ENDED: lambda machine: machine.job_ended(None, NOW) and None,
    Fact.FAILED_OFTEN: fail_often,
    Fact.SAID_HELLO: lambda machine: machine.said_hello(PID + 1),
    Fact.IS_BURIED: be_buried,
    Fact.RECOVERS: lambda machine: machine.recovers(),
    Fact.REGISTERED: lambda machine: machine.registered(NOW) and None,
    Fact.WAS_CUT: lambda machine: machine.was_cut() and None,
    Fact.DIED: die,
    Fact.ENDED: end,
    Fact.DECOMMISSIONED: be_decommissioned,
    Fact.UNWISHED: lambda machine: machine.wished(False),
    Fact.WISHED: be_wished,
    Fact.START_ASKED: ask_for_a_start,
    Fact.APPLICATION_STOPS: lambda machine: machine.application_stops(),
}
BEGINS_WITH_A_HELLO = (Fact.IS_BURIED,)
"""Facts that come with another one, which has rows of its own."""


@pytest.mark.parametrize(
    ("before", "fact", "after", "do"),
    [
        pytest.param(before, fact, *TABLE[before, fact], id=f"{before}: {fact}")
        for before, fact in sorted(TABLE)
    ],
)
def test_the_machine_does_what_its_row_says(before, fact, after, do):
    machine = in_state(before)
    done = BY_FACT[fact](machine)
    assert machine.state is after
    if done is not None:
        assert done is do


@pytest.mark.parametrize("state", SlotState)
@pytest.mark.parametrize("fact", [fact for fact in Fact if fact not in BEGINS_WITH_A_HELLO])
def test_a_fact_without_a_row_leaves_the_state_as_it_is(state, fact):
    if (state, fact) in TABLE or (fact, state) == (Fact.FAILED_OFTEN, S.TRYING):
        return
    machine = in_state(state)
    do = machine._on(fact)
    assert (machine.state, do) == (state, Do.NOTHING)


def test_no_pair_of_state_and_fact_has_two_rows():
    assert len(TABLE) == sum(len(row.before) for row in ROWS)


def test_each_state_is_reached_and_each_fact_is_in_the_table():
    reached, before = {S.AWAY}, set()
    while reached != before:
        before = set(reached)
        reached |= {after for (state, _), (after, _) in TABLE.items() if state in reached}
    assert reached == set(SlotState)
    assert {fact for _, fact in TABLE} == set(Fact) == set(BY_FACT)


def test_the_end_of_an_application_is_not_left():
    assert {after for (state, _), (after, _) in TABLE.items() if state is S.ENDING} == {S.ENDING}


@pytest.mark.parametrize("state", SlotState)
def test_a_job_is_launched_where_none_runs_unless_its_broker_rests_or_may_serve(state):
    machine = in_state(state)
    machine.job_runs = True
    assert not machine.may_launch
    machine.job_runs = False
    assert machine.may_launch is (state not in LAUNCHES_NOTHING)


def test_words_are_those_of_the_contract():
    assert {state.word for state in SlotState} == {
        *("serving", "starting", "recovering", "stopping", "stopped"),
        *("away", "no executor", CRASH_LOOP),
    }


def test_a_broker_that_is_to_serve_again_before_it_has_stopped_is_launched_when_it_has():
    machine = in_state(S.STOPPING)
    machine.wished(True)
    assert machine.state is S.STOPPING
    assert machine.ended(NOW) == (True, Do.REPORT_DEATH)
    assert machine.state is S.AWAY


def test_a_fifth_short_start_is_a_crash_loop_also_if_its_connection_ends_after_its_job():
    machine = SlotMachine()
    run_a_job(machine, times=4)
    machine.launches(0, NOW)
    machine.said_hello(PID)
    machine.registered(NOW)
    assert "5 starts in a row" in machine.job_ended(None, NOW + 1)
    assert machine.state is S.SERVING
    machine.ended(NOW + 1)
    assert machine.state is S.CRASH_LOOP


def test_starts_without_zookeeper_are_no_crash_loop_and_the_next_failure_counts_again():
    machine = SlotMachine()
    for _ in range(7):
        machine.launches(0, NOW)
        machine.failed(Failure(reason="ZooKeeper is away"), zookeeper_is_away=True)
        assert machine.job_ended(None, NOW) is None
    assert (machine.state, machine.starts.short) == (S.AWAY, 0)
    run_a_job(machine)
    assert machine.starts.short == 1


@pytest.mark.parametrize(
    ("state", "reason"),
    [(S.SERVING, ""), (S.CUT, "the driver does not reach its host; it may serve"), (S.AWAY, "no disk")],
)
def test_a_state_has_its_reason(state, reason):
    machine = in_state(state)
    machine.farewell = "no disk"
    assert machine.reason == reason


def test_the_same_failure_is_news_once_and_lasting_after_three_starts():
    machine = SlotMachine()
    news = []
    for _ in range(3):
        assert machine.lasting_failure is None
        machine.launches(0, NOW)
        news.append(machine.failed(Failure(reason="no disk"), zookeeper_is_away=False))
        machine.job_ended(None, NOW)
    assert news == [True, False, False]
    assert str(machine.lasting_failure) == "no disk"


def test_the_state_is_set_in_one_place():
    """That is where the table is looked up."""
    room = Path(slot_machine.__file__).parent
    places = [
        (path.name, function.name)
        for path in room.glob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for one in ast.walk(function)
        if isinstance(one, ast.Attribute) and one.attr == "state" and isinstance(one.ctx, ast.Store)
    ]
    assert places == [("slot_machine.py", "_on")]
