"""kafka-python as a member of the consumer group."""

import contextlib
from collections.abc import Collection
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import FencedInstanceIdError, KafkaError
from kafka.structs import OffsetAndMetadata

from chaos.clients.client_parts import REQUEST_TIMEOUT_MS, RETRY_MS, TAIL_RECORDS, Place, Seen, Settings
from chaos.clients.kafka_python_client import Reach, seen_by_kafka_python
from chaos.clients.member_parts import GROUP, HEARTBEAT_MS, POLL_INTERVAL_MS, SESSION_MS, Membership
from histories import Writer

ASK_MS = 5_000
COMMIT_MS = 10_000


class EveryMember(RoundRobinPartitionAssignor):  # type: ignore[misc] # kafka-python has no types
    """kafka-python's assignor forgets members, unless those with an instance id stand together."""

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> Any:
        return super().assign(cluster, sorted(members, key=lambda member: member.group_instance_id is None))


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python has no types
    """Notes what was assigned; the loop resumes it, since a listener must not wait."""

    def __init__(self, ours: Membership) -> None:
        self.ours = ours
        self.consumer: Any = None
        self.to_resume: set[Place] = set()

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        self.ours.disown((one.topic, one.partition) for one in revoked)
        self.to_resume.clear()

    def on_partitions_lost(self, lost: Collection[Any]) -> None:
        self.on_partitions_revoked(lost)

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self.ours.disown(self.ours.owned)
        self.to_resume = {(one.topic, one.partition) for one in assigned}
        known = self.consumer.group_metadata()
        self.ours.assigned(known.generation_id, known.member_id, sorted(self.to_resume))


def join(settings: Settings, writer: Writer) -> None:
    """Read what the group assigns until told to stop, or until a twin has taken over."""
    ours, reach = Membership(settings, writer), Reach()
    listener = _Listener(ours)
    consumer = listener.consumer = KafkaConsumer(
        **settings.access.kafka_python(),
        client_id=settings.name,
        group_id=GROUP,
        group_instance_id=ours.instance,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        max_poll_interval_ms=POLL_INTERVAL_MS,
        partition_assignment_strategy=[EveryMember],
        auto_offset_reset="none",
        enable_auto_commit=False,
        check_crcs=True,
        fetch_max_wait_ms=100,
        request_timeout_ms=REQUEST_TIMEOUT_MS * 2,
        reconnect_backoff_ms=RETRY_MS,
        reconnect_backoff_max_ms=500,
        retry_backoff_ms=RETRY_MS,
    )
    consumer.subscribe(list(settings.topics), listener=listener)
    with contextlib.closing(consumer):
        while not settings.is_stopping:
            try:
                # Before the poll: it fails for a partition without a committed offset.
                for place in sorted(listener.to_resume):
                    _resume(ours, consumer, place)
                    listener.to_resume.discard(place)
                ours.take(_polled(consumer))
                _commit(ours, consumer)
                reach.note(None)
            except FencedInstanceIdError as error:
                raise SystemExit(f"{settings.name} is a member no more: {error!r}") from None
            except KafkaError as error:
                ours.trouble(repr(error))
                reach.note(error)
                # Whatever it was: on from where the group is.
                listener.to_resume |= ours.owned
                ours.disown(ours.owned)
        with contextlib.suppress(KafkaError):
            _commit(ours, consumer, now=True)


def _polled(consumer: Any) -> dict[Place, list[Seen]]:
    got = consumer.poll(timeout_ms=200, max_records=TAIL_RECORDS)
    return {
        (one.topic, one.partition): [seen_by_kafka_python(each) for each in some] for one, some in got.items()
    }


def _resume(ours: Membership, consumer: Any, place: Place) -> None:
    """From the committed offset on, or from the log's start."""
    asked, op = TopicPartition(*place), ours.ask(place)
    committed = consumer.committed(asked, metadata=True, timeout_ms=ASK_MS)
    offset, name = (-1, None) if committed is None else (committed.offset, committed.metadata)
    ours.found(op, offset, name)
    begin = max(consumer.beginning_offsets([asked], timeout_ms=ASK_MS)[asked], offset)
    consumer.seek(asked, begin)
    ours.own(place, begin)


def _commit(ours: Membership, consumer: Any, *, now: bool = False) -> None:
    if not (dues := ours.due(now=now)):
        return
    offsets = {TopicPartition(*due.place): OffsetAndMetadata(due.offset, due.name, -1) for due in dues}
    error: KafkaError | None = None
    try:
        consumer.commit(offsets, timeout_ms=COMMIT_MS)
    except KafkaError as failed:
        error = failed
    for due in dues:
        ours.done(due, None if error is None else repr(error))
    if error is not None:
        raise error
