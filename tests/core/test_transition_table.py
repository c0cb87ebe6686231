"""Tables of transitions: complete, checked by their machines, and without a state that nothing leads to."""

import pytest

from sparklog.core.controller import phases
from sparklog.core.controller.machine import ControllerMachine
from sparklog.core.controller.phases import Phase
from sparklog.core.group import states as group_states
from sparklog.core.group.group import Group
from sparklog.core.group.states import GroupState
from sparklog.core.transaction_coordinator import states as transaction_states
from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.core.transition_table import Transition, states_before
from sparklog.core.write_coordinator import states as app_states
from sparklog.core.write_coordinator.app import App, Change
from sparklog.core.write_coordinator.records import NO_VERSION, Head
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.settings.config import BrokerConfig


def test_the_states_before_are_those_of_all_rows():
    rows = (
        Transition(AppState.IDLE, "one", AppState.OPEN),
        Transition(AppState.PREPARED_ABORT, "another", AppState.OPEN),
        Transition(AppState.OPEN, "back", AppState.IDLE),
    )
    assert states_before(rows) == {
        AppState.OPEN: {AppState.IDLE, AppState.PREPARED_ABORT},
        AppState.IDLE: {AppState.OPEN},
    }


@pytest.mark.parametrize(
    ("rows", "first", "unused"),
    [
        (phases.TRANSITIONS, Phase.NEW, set()),
        (group_states.TRANSITIONS, GroupState.EMPTY, {GroupState.DEAD}),
        (app_states.TRANSITIONS, AppState.IDLE, set()),
        (
            transaction_states.TRANSITIONS,
            TransactionState.EMPTY,
            {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE},
        ),
    ],
)
def test_each_state_is_reached_from_the_first_one(rows, first, unused):
    reached, before = {first}, set()
    while reached != before:
        before = set(reached)
        reached |= {row.after for row in rows if row.before in reached}
    assert reached == set(type(first)) - unused
    assert {row.before for row in rows} <= reached


def test_a_machine_refuses_a_transition_that_its_table_does_not_have():
    with pytest.raises(AssertionError, match="from new to writing"):
        ControllerMachine(BrokerConfig.parse({}))._enter(Phase.WRITING)
    with pytest.raises(AssertionError, match="from Empty to Stable"):
        Group("g", 0).enter(GroupState.STABLE, 0)
    with pytest.raises(AssertionError, match="app: from "):
        App("app", head_in(AppState.IDLE)).apply(Change(head=head_in(AppState.PREPARED_COMMIT)), 0)


def head_in(state: AppState) -> Head:
    return Head(
        state=state,
        version=1,
        write_number=1,
        committed_version=NO_VERSION,
        timeout_ms=0,
        is_plain=False,
        start_ms=0,
        last_update_ms=0,
    )
