"""The command says with bytes what a destination lacks, before anything moves."""

from sparklog.cli.cluster.brokers.room import too_little_room
from sparklog.client.changes import LogDirDescription, ReplicaInLogDir
from sparklog.model.ids import TopicPartition

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
CURRENT = {FIRST: (1, 2), SECOND: (1, 2)}
PLANNED = {FIRST: (3, 2), SECOND: (3, 2)}


def directory(usable, *, is_offline=False, **sizes):
    replicas = {
        TopicPartition("t", int(name.removeprefix("p"))): ReplicaInLogDir(size, 0)
        for name, size in sizes.items()
    }
    return LogDirDescription(is_offline, replicas, 1_000_000, usable)


def test_a_broker_with_too_little_free_is_named_with_the_bytes():
    found = too_little_room(
        CURRENT,
        PLANNED,
        {1: [directory(0, p0=700, p1=400)], 2: [directory(0, p0=600)], 3: [directory(1_000)]},
    )
    assert found == ["broker 3 has 1,000 bytes free, and would get 1,100 bytes"]


def test_one_replica_needs_one_log_directory():
    holders = {1: [directory(0, p0=700, p1=100)]}
    found = too_little_room(CURRENT, PLANNED, holders | {3: [directory(500), directory(600)]})
    assert found == [
        "broker 3 would get a replica of 700 bytes, and no log directory there has more than 600 bytes free"
    ]
    assert too_little_room(CURRENT, PLANNED, holders | {3: [directory(500), directory(800)]}) == []


def test_a_failed_directory_has_no_room_and_an_unknown_one_is_not_judged():
    holders = {1: [directory(0, p0=700, p1=100)]}
    offline = [directory(10_000, is_offline=True), directory(100)]
    assert too_little_room(CURRENT, PLANNED, holders | {3: offline})
    assert too_little_room(CURRENT, PLANNED, holders | {3: [directory(-1)]}) == []
    assert too_little_room(CURRENT, PLANNED, holders) == []


def test_what_is_there_already_needs_no_room():
    assert too_little_room(CURRENT, CURRENT, {1: [directory(0, p0=700)]}) == []
