"""What follows from a change of roles is delivered after the guard of the roles is released."""

import pytest

from sparklog.broker.disks.log_dirs import DirectoryFailed
from sparklog.model.errors import ErrorCode
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log_directory import LogDirectory
from tests.broker.conftest import TP


@pytest.fixture
def member(members):
    return members[1]


@pytest.fixture
def held(member, monkeypatch):
    """Whether the guard was held, at each call of a fetcher and of a listener."""
    seen, start = [], member.start

    def is_held():
        return member.parts.roles._guard.locked()

    class Listener:
        def began_leading(self, topic_partition, leader_epoch) -> None:
            seen.append(("began", is_held()))

        def ceased_leading(self, topic_partition, leader_epoch) -> None:
            seen.append(("ceased", is_held()))

    def started(partition, leader) -> None:
        seen.append(("started", is_held()))
        start(partition, leader)

    monkeypatch.setattr(member, "start", started)
    member.parts.leadership.add_listener(Listener())
    return seen


def test_a_change_of_roles_notifies_fetchers_and_listeners_outside_its_guard(member, held) -> None:
    member.become(1, 3)
    member.become(2, 4)
    assert held == [("began", False), ("ceased", False), ("started", False)]


@pytest.mark.parametrize("delete", [False, True])
def test_a_replica_that_stops_ceases_to_lead_outside_the_guard(member, held, delete) -> None:
    member.become(1, 3)
    assert member.parts.roles.stop_replica(TP, 4, delete=delete) is ErrorCode.none
    assert held == [("began", False), ("ceased", False)]


def test_a_disk_that_fails_is_marked_within_the_guard_and_reported_after_it(
    member, tmp_path, monkeypatch
) -> None:
    directory = LogDirectory.open(str(tmp_path / "logs"), 1, "c", LocalDisk(), member.clock, boot_id="b")
    failures, seen = member.parts.failures, []

    def fail(*_args, **_options):
        raise DirectoryFailed(directory, OSError(5, "Input/output error"))

    def is_held() -> bool:
        return member.parts.roles._guard.locked()

    take_offline = failures.take_offline
    monkeypatch.setattr(member.parts.log_dirs, "create", fail)
    monkeypatch.setattr(member.parts.log_dirs, "fail", lambda *_args, **_options: [], raising=False)
    monkeypatch.setattr(type(member.parts.log_dirs), "is_any_online", True, raising=False)
    monkeypatch.setattr(
        failures, "take_offline", lambda *args, **how: (seen.append(is_held()), take_offline(*args, **how))[1]
    )
    monkeypatch.setattr(failures, "report_replicas", lambda _: seen.append(is_held()))
    assert member.become(1, 1) is ErrorCode.kafka_storage_error
    assert seen == [True, False]


def test_a_change_that_ends_in_a_bug_releases_the_guard_and_delivers(member, held, monkeypatch) -> None:
    member.become(1, 3)
    partition, role = member.partition, type(member.partition).on_leader_and_isr

    def meets_a_bug(*args, **facts):
        role(partition, *args, **facts)
        raise KeyError("a bug")

    monkeypatch.setattr(partition, "on_leader_and_isr", meets_a_bug)
    with pytest.raises(KeyError):
        member.become(2, 4)
    assert held == [("began", False), ("ceased", False), ("started", False)]
