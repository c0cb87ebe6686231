"""Groups as administrators see them."""

from sparklog.core.group.requests import ListGroups
from sparklog.core.group.responses import DescribedMember, ListedGroup
from sparklog.model.errors import ErrorCode
from tests.core.group.dialogue import GROUP, INITIAL_DELAY_MS, Coordinator


def test_a_stable_group_is_described_with_metadata_and_assignments() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.static_group("kitchen")
    described = coordinator.described()
    assert (described.error, described.state) == (ErrorCode.none, "Stable")
    assert (described.protocol_type, described.protocol) == ("consumer", "range")
    assert described.members == (
        DescribedMember(alice.member_id, "kitchen", "kitchen", "/10.0.0.1", b"orders", b"kitchen"),
    )


def test_during_a_rebalance_only_the_members_are_described() -> None:
    coordinator = Coordinator()
    alice = coordinator.client("alice")
    alice.joins()
    for state in ("PreparingRebalance", "CompletingRebalance"):
        described = coordinator.described()
        assert (described.state, described.protocol) == (state, "")
        assert [(one.metadata, one.assignment) for one in described.members] == [(b"", b"")]
        coordinator.passes(INITIAL_DELAY_MS)


def test_a_group_that_is_not_there_is_dead() -> None:
    described = Coordinator().described()
    assert (described.error, described.group_id, described.state) == (ErrorCode.none, GROUP, "Dead")
    assert described.members == ()


def test_groups_are_listed_by_state_whatever_its_case() -> None:
    coordinator = Coordinator()
    coordinator.stable_group("alice")
    coordinator.client("bob", group_id="others", protocol_type="connect").joins()
    stable = ListedGroup(GROUP, "consumer", "Stable")
    preparing = ListedGroup("others", "connect", "PreparingRebalance")
    for states, groups in (
        ((), (stable, preparing)),
        (("stable",), (stable,)),
        (("PREPARINGREBALANCE", "Dead"), (preparing,)),
        (("no state",), ()),
    ):
        assert coordinator.ask(ListGroups(states=frozenset(states))).answer.groups == groups


def test_groups_are_counted_for_metrics() -> None:
    coordinator = Coordinator()
    alice, _ = coordinator.stable_group("alice", "bob")
    alice.commits({})
    assert coordinator.shard.counters.rebalances == 1
