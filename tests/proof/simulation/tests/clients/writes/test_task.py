"""What a task says counts as a sign of life of its write, unless it withdraws."""

from types import SimpleNamespace

import pytest

from simulation.clients.writes.task import Task
from sparklog.model.write_outcomes import MemberState


@pytest.mark.parametrize(
    ("state", "spoke_us"), [(MemberState.WORKING, 9), (MemberState.FINISHED, 9), (MemberState.ABORTED, 5)]
)
def test_a_withdrawal_is_no_sign_of_life(state, spoke_us):
    """Seed 3692: the coordinator aborted a write for its silence, which the rule took for too early."""
    member = SimpleNamespace(spoke_us=5, is_finished=False)
    Task._note(SimpleNamespace(_member=member, _spoke_us=9), state)
    assert member.spoke_us == spoke_us
