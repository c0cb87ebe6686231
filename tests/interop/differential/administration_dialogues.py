"""Dialogues of administrators, written by hand: what they may get wrong."""

import itertools
import time
from collections.abc import Callable
from typing import Final

from sparklog.records.kafka.encode import Record, build_records_batch
from tests.interop.differential.administration import (
    ANY,
    APPEND,
    BROKER_TYPE,
    DEFAULT,
    DELETE,
    EXACT,
    SET,
    SUBTRACT,
    Administration,
)

Dialogue = Callable[[Administration], None]

ODD_NAMES: Final = ("", ".", "..", "a b", "a/b", "\u202e", "x" * 250)
ABSENT: Final = "nothing-of-this-name"
NO_BROKER: Final = 77
BEGAN_MS: Final = int(time.time() * 1_000)


def written(admin: Administration, topic: str | None = None) -> None:
    """Five records, a millisecond apart."""
    records = [Record(b"k", b"v", timestamp_ms=BEGAN_MS + number) for number in range(5)]
    data = [{"index": 0, "records": build_records_batch(records, now_ms=BEGAN_MS)}]
    topics = [{"name": admin.topic if topic is None else topic, "partition_data": data}]
    admin.talk.ask("Produce", version=8, timeout_ms=10_000, topic_data=topics)


def a_topic_from_its_creation_to_its_deletion(admin: Administration) -> None:
    name = f"{admin.topic}-new"
    admin.create_all({"name": name, "num_partitions": 2, "replication_factor": 1}, validate_only=1)
    admin.create(name, 2)
    admin.create(name, 2)
    admin.until_known(name, 0)
    admin.extend(name, 3)
    admin.delete(name)
    admin.until_known(name, 3)
    admin.delete(name)


def topics_with_odd_names(admin: Administration) -> None:
    for name in ODD_NAMES:
        admin.create(name)
        admin.delete(name)
        admin.extend(name, 5)
        admin.metadata(name)


def topics_with_names_that_collide(admin: Administration) -> None:
    one, other = (f"{admin.topic}-{separator}" for separator in "._")
    admin.create(one)
    admin.create(other)
    admin.delete(one)


def topics_with_odd_numbers(admin: Administration) -> None:
    name = f"{admin.topic}-odd"
    for partitions, factor in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 2), (1, 32_767), (-1, 2)):
        admin.create(name, partitions, factor)


def topics_with_odd_assignments(admin: Administration) -> None:
    numbers = itertools.count()

    def create(*rows: tuple[int, tuple[int, ...]], partitions: int = -1, factor: int = -1) -> None:
        assignments = [{"partition_index": number, "broker_ids": ids} for number, ids in rows]
        admin.create(f"{admin.topic}-{next(numbers)}", partitions, factor, assignments=assignments)

    create((0, (1, 1)))
    create((1, (1,)))
    create((0, (1,)), (2, (1,)))
    create((0, (1,)), (0, (1,)))
    create((0, (1,)), partitions=1, factor=1)
    create((-1, (1,)))


def topics_with_odd_settings(admin: Administration) -> None:
    name = f"{admin.topic}-odd"
    for key, value in (
        ("no.such.setting", "1"),
        ("", "1"),
        ("retention.ms", "soon"),
        ("retention.ms", "-2"),
        ("cleanup.policy", "burn"),
        ("min.insync.replicas", "0"),
        ("compression.type", ""),
        ("segment.bytes", "13"),
        ("retention.ms", None),
    ):
        admin.create(name, configs=[{"name": key, "value": value}])


def topics_that_are_named_twice(admin: Administration) -> None:
    name = f"{admin.topic}-twice"
    one = {"name": name, "num_partitions": 1, "replication_factor": 1}
    admin.create_all(one, one, validate_only=1)
    admin.create_all()
    admin.delete(ABSENT, ABSENT)
    admin.delete()
    admin.metadata(ABSENT, ABSENT)


def partitions_that_cannot_be_added(admin: Administration) -> None:
    for count in (0, -1, 1, 2):
        admin.extend(admin.topic, count)
    admin.extend(ABSENT, 3)
    for assignments in (
        [],
        [{"broker_ids": [1]}, {"broker_ids": [1]}],
        [{"broker_ids": [NO_BROKER]}],
        [{"broker_ids": []}],
        [{"broker_ids": [1, 1]}],
    ):
        admin.extend(admin.topic, 3, assignments)
    admin.extend(admin.topic, 3, validate_only=1)
    admin.metadata(admin.topic)


def deletions_of_what_is_not_there(admin: Administration) -> None:
    admin.delete(ABSENT)
    admin.delete_by_id(b"\1" * 16)
    admin.delete_by_id(bytes(16))
    admin.delete_by_id(admin.topic_id, admin.topic)
    admin.delete_by_id(bytes(16), ABSENT)
    admin.metadata(admin.topic)


def metadata_of_what_is_not_there(admin: Administration) -> None:
    admin.metadata(ABSENT)
    admin.metadata(ABSENT, allow_auto_topic_creation=1)
    admin.metadata(admin.topic, ABSENT)
    for topic_id in (b"\1" * 16, admin.topic_id):
        admin.talk.ask("Metadata", version=12, topics=[{"topic_id": topic_id}])


def offsets_of_what_is_not_there(admin: Administration) -> None:
    written(admin)
    for time_ms in (-1, -2, BEGAN_MS + 2, BEGAN_MS + 99, 0, -5, -100):
        admin.offset_at(time_ms)
    admin.offset_at(-1, topic=ABSENT)
    admin.offset_at(-1, topic="")
    admin.offset_at(-1, topic="a/b")
    admin.offset_at(-1, partition=9)
    admin.offset_at(-1, partition=-1)
    for epoch in (0, 1, 99):
        admin.offset_at(-1, epoch=epoch)


def ends_of_epochs(admin: Administration) -> None:
    admin.epoch_end(0)
    written(admin)
    for epoch in (0, -1, 1, 99):
        admin.epoch_end(epoch)
    for current in (0, 1, 99):
        admin.epoch_end(0, current=current)
    admin.epoch_end(0, topic=ABSENT)
    admin.epoch_end(0, topic="")
    admin.epoch_end(0, partition=9)
    admin.epoch_end(0, partition=-1)


def records_that_are_deleted(admin: Administration) -> None:
    written(admin)
    for offset in (0, 2, 1, 2, 6, -2, 2**62, 5, -1):
        admin.delete_records(offset)
        admin.offset_at(-2)
    admin.delete_records(0, topic=ABSENT)
    admin.delete_records(0, topic="")
    admin.delete_records(0, partition=9)
    admin.delete_records(0, topic="__consumer_offsets")


def records_of_compacted_topics(admin: Administration) -> None:
    for policy in ("compact", "compact,delete"):
        name = f"{admin.topic}-{policy.replace(',', '-')}"
        admin.create(name, configs=[{"name": "cleanup.policy", "value": policy}])
        admin.until_known(name)
        written(admin, name)
        admin.delete_records(2, topic=name)
        admin.delete(name)


def settings_of_a_topic(admin: Administration) -> None:
    keys = ("retention.ms", "cleanup.policy", "max.message.bytes")
    admin.described(*keys)
    admin.alter(("retention.ms", SET, "1000"))
    admin.alter(("cleanup.policy", APPEND, "compact"))
    admin.until_described("cleanup.policy", "delete,compact")
    admin.described(*keys)
    admin.alter(("cleanup.policy", SUBTRACT, "delete"), ("retention.ms", DELETE, None))
    admin.until_described("cleanup.policy", "compact")
    admin.described(*keys)
    admin.replace(("max.message.bytes", "2000"))
    admin.until_described("cleanup.policy", "delete")
    admin.described(*keys)
    admin.replace()
    admin.until_described("max.message.bytes", "1048588")
    admin.described(*keys)
    admin.described("no.such.setting")


def settings_that_cannot_be_changed(admin: Administration) -> None:
    for change in (
        ("no.such.setting", SET, "1"),
        ("", SET, "1"),
        ("retention.ms", SET, "soon"),
        ("retention.ms", SET, None),
        ("retention.ms", APPEND, "5"),
        ("retention.ms", SUBTRACT, "5"),
        ("retention.ms", 9, "5"),
        ("no.such.setting", DELETE, None),
        ("cleanup.policy", APPEND, "burn"),
        ("cleanup.policy", SUBTRACT, "burn"),
        ("min.insync.replicas", SET, "0"),
    ):
        admin.alter(change)
    admin.alter(("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    admin.alter()
    admin.alter(("retention.ms", SET, "5"), validate_only=1)
    admin.replace(("no.such.setting", "1"))
    admin.replace(("retention.ms", "soon"))
    admin.replace(("retention.ms", None))
    admin.replace(("retention.ms", "1"), ("retention.ms", "2"))
    admin.described("retention.ms", "cleanup.policy")


def settings_of_what_is_not_there(admin: Administration) -> None:
    for kind in (0, 2, 3, 4, 16, 99):
        for name in (ABSENT, "", "a/b"):
            admin.described("retention.ms", name=name, kind=kind)
            admin.alter(("retention.ms", SET, "1"), name=name, kind=kind, validate_only=1)
    for name in ("77", "-1"):
        admin.described("log.retention.ms", name=name, kind=BROKER_TYPE)
        admin.alter(("log.retention.ms", SET, "1"), name=name, kind=BROKER_TYPE, validate_only=1)


def settings_of_a_broker_that_do_not_change(admin: Administration) -> None:
    for key, value in (
        ("broker.id", "5"),
        ("no.such.setting", "1"),
        ("log.retention.ms", "soon"),
        ("zookeeper.connect", "x"),
        ("log.dirs", "x"),
    ):
        for name in ("1", ""):
            admin.alter((key, SET, value), name=name, kind=BROKER_TYPE, validate_only=1)


def quotas_of_every_kind(admin: Administration) -> None:
    rate = ("producer_byte_rate", 1_000.5, 0)
    user, client = f"{admin.topic}-user", f"{admin.topic}-client"
    admin.set_quota({"user": user}, rate)
    admin.set_quota({"user": user, "client-id": client}, rate, ("request_percentage", 50.0, 0))
    admin.set_quota({"user": user, "client-id": None}, rate)
    admin.quotas(("user", EXACT, user))
    admin.quotas(("user", EXACT, user), strict=1)
    admin.quotas(("user", EXACT, user), ("client-id", EXACT, client))
    admin.quotas(("user", EXACT, user), ("client-id", DEFAULT, None))
    admin.quotas(("user", EXACT, user), ("client-id", ANY, None))
    for entity in ({"user": user}, {"user": user, "client-id": client}, {"user": user, "client-id": None}):
        admin.set_quota(entity, ("producer_byte_rate", 0.0, 1), ("request_percentage", 0.0, 1))
    admin.quotas(("user", EXACT, user))


def quotas_that_cannot_be_set(admin: Administration) -> None:
    user = f"{admin.topic}-user"
    rate = ("producer_byte_rate", 1_000.0, 0)
    admin.set_quota({"user": user}, ("no_such_rate", 1.0, 0), validate_only=1)
    admin.set_quota({"user": user}, ("producer_byte_rate", -1.0, 0), validate_only=1)
    admin.set_quota({"user": user}, ("producer_byte_rate", 0.5, 0), validate_only=1)
    admin.set_quota({"user": user}, ("connection_creation_rate", 5.0, 0), validate_only=1)
    admin.set_quota({"ip": "10.0.0.1"}, rate, validate_only=1)
    admin.set_quota({"ip": "nowhere at all"}, ("connection_creation_rate", 5.0, 0), validate_only=1)
    admin.set_quota({"ip": "10.0.0.1", "user": user}, rate, validate_only=1)
    admin.set_quota({"role": "x"}, rate, validate_only=1)
    admin.set_quota({}, rate, validate_only=1)
    admin.set_quota({"user": ""}, rate, validate_only=1)
    admin.set_quota({"user": user}, validate_only=1)
    admin.set_quota({"user": user}, rate, rate, validate_only=1)
    admin.set_quota({"user": user}, ("producer_byte_rate", 0.0, 1), validate_only=1)
    admin.quotas(("role", EXACT, "x"))
    admin.quotas(("user", 9, user))
    admin.quotas(("user", EXACT, None))
    admin.quotas(("user", EXACT, user), ("user", ANY, None))
    admin.quotas(("user", EXACT, user), ("ip", ANY, None))


def rules_of_an_open_cluster(admin: Administration) -> None:
    any_rule = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    rule = {"resource_type": 2, "resource_name": admin.topic, "resource_pattern_type": 3, "operation": 3}
    rule |= {"principal": "User:alice", "host": "*", "permission_type": 3}
    talk = admin.talk
    talk.ask("DescribeAcls", **any_rule)
    for count in range(3):
        talk.ask("CreateAcls", creations=[rule] * count)
        talk.ask("DeleteAcls", filters=[any_rule] * count)


def tokens_of_an_open_cluster(admin: Administration) -> None:
    talk, alice = admin.talk, {"principal_type": "User", "principal_name": "alice"}
    talk.ask("CreateDelegationToken", renewers=[alice], max_lifetime_ms=-1)
    for owner in ("", "alice"):
        named = {"owner_principal_type": "User", "owner_principal_name": owner}
        talk.ask("CreateDelegationToken", renewers=[], max_lifetime_ms=5, **named)
    talk.ask("RenewDelegationToken", hmac=b"secret", renew_period_ms=-1)
    talk.ask("ExpireDelegationToken", hmac=b"secret", expiry_time_period_ms=-1)
    for owners in (None, [], [alice]):
        talk.ask("DescribeDelegationToken", owners=owners)


def users_without_a_password(admin: Administration) -> None:
    for names in (None, [], ["alice"], ["alice", "bob", "", "alice", ""]):
        users = names and [{"name": name} for name in names]
        admin.talk.ask("DescribeUserScramCredentials", users=users)


ADMINISTRATION_DIALOGUES: Final[tuple[Dialogue, ...]] = (
    a_topic_from_its_creation_to_its_deletion,
    deletions_of_what_is_not_there,
    ends_of_epochs,
    metadata_of_what_is_not_there,
    offsets_of_what_is_not_there,
    partitions_that_cannot_be_added,
    quotas_of_every_kind,
    quotas_that_cannot_be_set,
    records_of_compacted_topics,
    records_that_are_deleted,
    rules_of_an_open_cluster,
    settings_of_a_broker_that_do_not_change,
    settings_of_a_topic,
    settings_of_what_is_not_there,
    settings_that_cannot_be_changed,
    tokens_of_an_open_cluster,
    topics_that_are_named_twice,
    topics_with_names_that_collide,
    topics_with_odd_assignments,
    topics_with_odd_names,
    topics_with_odd_numbers,
    topics_with_odd_settings,
    users_without_a_password,
)
