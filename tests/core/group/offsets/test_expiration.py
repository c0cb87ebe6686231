"""Offsets that nobody reads expire (KIP-211)."""

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.group.group_machine import GROUPS_PER_CHECK, GroupMachine
from sparklog.core.group.records import OffsetKey, OffsetValue
from sparklog.core.group.requests import OffsetCommit, OffsetToCommit
from sparklog.core.group.settings import GroupSettings
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from tests.core.group.dialogue import (
    DAY_MS,
    GROUP,
    MINUTE_MS,
    WALL_START_MS,
    Client,
    Coordinator,
    at,
    topics_of,
)

ORDERS_0 = TopicPartition("orders", 0)
PAYMENTS_0 = TopicPartition("payments", 0)
CHECK_MS = 10 * MINUTE_MS


def keep_alive(coordinator: Coordinator, client: Client, span_ms: int) -> None:
    """Let time pass with a heartbeat in every session."""
    for _ in range(span_ms // 1_000_000):
        assert client.heartbeat() is ErrorCode.none
        coordinator.passes(1_000_000)


def test_offsets_expire_seven_days_after_the_group_became_empty() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.commits({ORDERS_0: 5})
    coordinator.passes(5_000)
    alice.leaves()
    coordinator.passes(7 * DAY_MS - CHECK_MS)
    assert coordinator.committed() == {ORDERS_0: 5}
    coordinator.passes(2 * CHECK_MS)
    assert coordinator.state() == "Dead"
    assert coordinator.shard.applied_state() == {}
    assert coordinator.shard.counters.offsets_expired == 1


def test_the_time_since_the_group_became_empty_survives_its_coordinator() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.commits({ORDERS_0: 5})
    alice.leaves()
    coordinator.passes(6 * DAY_MS)
    coordinator.restart()
    coordinator.passes(DAY_MS - CHECK_MS)
    assert coordinator.committed() == {ORDERS_0: 5}
    coordinator.passes(2 * CHECK_MS)
    assert coordinator.state() == "Dead"


def test_offsets_of_a_group_that_never_had_members_expire_after_their_commit() -> None:
    coordinator = Coordinator()
    admin = coordinator.client("admin")
    admin.commits({ORDERS_0: 5})
    coordinator.passes(3 * DAY_MS)
    admin.commits({PAYMENTS_0: 5})
    coordinator.passes(4 * DAY_MS + CHECK_MS)
    assert coordinator.committed() == {PAYMENTS_0: 5}
    coordinator.passes(3 * DAY_MS + CHECK_MS)
    assert coordinator.state() == "Dead"


def test_offsets_of_a_topic_that_members_no_longer_read_expire_after_their_commit() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice", session_ms=1_800_000)
    alice.commits({ORDERS_0: 5, PAYMENTS_0: 6})
    keep_alive(coordinator, alice, 8 * DAY_MS)
    assert coordinator.committed() == {ORDERS_0: 5}


def test_offsets_of_members_whose_topics_are_not_known_do_not_expire() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice", session_ms=1_800_000, protocols=(("range", b"?"),))
    alice.commits({PAYMENTS_0: 6})
    keep_alive(coordinator, alice, 8 * DAY_MS)
    assert coordinator.committed() == {PAYMENTS_0: 6}


def test_offsets_of_a_group_of_another_protocol_type_do_not_expire_while_it_has_members() -> None:
    coordinator = Coordinator()
    [worker] = coordinator.stable_group("worker", session_ms=1_800_000, protocol_type="connect")
    worker.commits({PAYMENTS_0: 6})
    keep_alive(coordinator, worker, 8 * DAY_MS)
    assert coordinator.committed() == {PAYMENTS_0: 6}


def test_a_commit_that_named_its_retention_expires_by_it() -> None:
    coordinator = Coordinator()
    offsets = (OffsetToCommit(ORDERS_0, 5),)
    request = OffsetCommit(GROUP, generation_id=-1, member_id="", offsets=offsets, retention_time_ms=DAY_MS)
    coordinator.ask(request)
    coordinator.passes(DAY_MS - CHECK_MS)
    assert coordinator.committed() == {ORDERS_0: 5}
    coordinator.passes(2 * CHECK_MS)
    assert coordinator.committed() == {}


def test_an_offset_with_a_commit_under_way_does_not_expire() -> None:
    coordinator = Coordinator()
    admin = coordinator.client("admin")
    admin.commits({ORDERS_0: 5})
    coordinator.passes(7 * DAY_MS - MINUTE_MS)
    coordinator.is_log_slow = True
    admin.commits({ORDERS_0: 6})
    coordinator.passes(CHECK_MS)
    assert len(coordinator.open_writes) == 1
    coordinator.log_writes()
    assert coordinator.committed() == {ORDERS_0: 6}


def test_an_empty_group_without_offsets_goes_at_the_next_check() -> None:
    coordinator = Coordinator()
    [alice] = coordinator.stable_group("alice")
    alice.leaves()
    assert coordinator.state() == "Empty"
    coordinator.passes(CHECK_MS)
    assert coordinator.state() == "Dead"
    assert coordinator.shard.applied_state() == {}


def test_what_the_log_refused_expires_at_the_next_check() -> None:
    coordinator = Coordinator()
    coordinator.client("admin").commits({ORDERS_0: 5})
    coordinator.is_log_slow = True
    coordinator.passes(7 * DAY_MS)
    coordinator.log_refuses(ErrorCode.not_enough_replicas)
    assert coordinator.committed() == {ORDERS_0: 5}
    coordinator.is_log_slow = False
    coordinator.passes(CHECK_MS)
    assert coordinator.committed() == {}


def test_while_the_log_is_slow_an_offset_expires_once() -> None:
    coordinator = Coordinator()
    coordinator.client("admin").commits({ORDERS_0: 5})
    coordinator.is_log_slow = True
    coordinator.passes(7 * DAY_MS + 5 * CHECK_MS)
    assert len(coordinator.open_writes) == 1


def test_the_settings_of_retention_are_obeyed() -> None:
    settings = GroupSettings(offsets_retention_ms=MINUTE_MS, offsets_retention_check_interval_ms=1_000)
    coordinator = Coordinator(settings=settings)
    coordinator.client("admin").commits({ORDERS_0: 5})
    coordinator.passes(MINUTE_MS - 1)
    assert coordinator.committed() == {ORDERS_0: 5}
    coordinator.passes(1_001)
    assert coordinator.committed() == {}


def test_thousands_of_groups_are_checked_in_steps() -> None:
    value = OffsetValue(5, -1, "", WALL_START_MS)
    groups = 2 * GROUPS_PER_CHECK + 1
    log = [StateRecord(OffsetKey(f"g{number}", ORDERS_0), value) for number in range(groups)]
    shard = GroupMachine.of(GroupSettings(), topics_of)
    for record in log:
        shard.replay(record)
    shard.on_loaded(at(0))
    week = at(7 * DAY_MS)
    steps = [len(shard.on_time(week)) for _ in range(4)]
    assert steps == [GROUPS_PER_CHECK, GROUPS_PER_CHECK, 1, 0]
    assert shard.next_deadline_ms() == week.monotonic_ms + CHECK_MS
