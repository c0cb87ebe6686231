"""Administrators at work while faults strike: topics come and go, replicas and leaders move, records go.

Every operation may fail, as the cluster is under faults; that is no finding. What is asked for is in the
history before it is asked, for the checker to know what may be gone.
"""

import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

from confluent_kafka import ElectionType, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka import TopicPartition as KafkaPythonPartition
from kafka.admin import KafkaAdminClient

from chaos.access import Access
from chaos.typed.changes import change_columns, connected
from histories import Writer

EVERY_S = (2.0, 8.0)
SCRATCH_MAX = 4
SCRATCH_RECORDS = 20
KEPT_RECORDS = 500
TIMEOUT_S = 20.0
REPLICAS_MAX = 3
"""A fourth broker is room for those of another."""
MISTAKES = (TypeError, AttributeError, AssertionError, NotImplementedError, SystemError)
"""What no cluster under faults brings about: the harness, or a library, cannot do what it is told."""
_CLIENT = {
    "log_level": 0,
    "error_cb": lambda error: None,
    "reconnect.backoff.max.ms": 500,
    # It asks for offsets under the leader epoch that it knows, and for no news when that is refused.
    "metadata.max.age.ms": 1_000,
}


class Administrators:
    """One thread, from ``start`` to ``stop``. ``moving`` is a topic with fewer replicas than brokers."""

    def __init__(
        self,
        access: Access,
        writer: Writer,
        rng: Random,
        *,
        brokers: list[int],
        topics: dict[str, int],
        moving: str,
        shrinking: str,
        every_s: tuple[float, float] = EVERY_S,
        alters: bool = False,
    ) -> None:
        """``alters``: there is a typed topic, whose columns are changed."""
        self.done: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.mistakes: set[str] = set()
        """Operations that were never asked of the cluster, and why; each is a finding."""
        self.scratch: dict[str, int] = {}
        """Topics of ours that are there, with their numbers of partitions."""
        self._access, self._writer, self._rng = access, writer, rng
        self._brokers, self._topics, self._moving, self._shrinking = brokers, topics, moving, shrinking
        self._every_s, self._alters = every_s, alters
        self._made = 0
        self._gone: list[str] = []
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._work, name="administrators", daemon=True)
        self._admin = AdminClient({**access.confluent(), **_CLIENT})

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._leave.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        operations: dict[str, Callable[[], None]] = {
            "create-topic": self._create,
            "delete-topic": self._delete,
            "move-partition": self._move,
            "preferred-election": self._elect,
            "delete-records": self._delete_records,
            **({"alter-columns": self._alter} if self._alters else {}),
        }
        while not self._leave.wait(self._rng.uniform(*self._every_s)):
            name = self._rng.choice(sorted(operations))
            try:
                operations[name]()
            except MISTAKES as error:
                self.mistakes.add(f"{name}: {error!r}")
            except Exception as error:  # noqa: BLE001 (two libraries' errors, and what they make of a cut)
                what = f"{name}: {_kind_of(error)}"
                self.refused[what] = self.refused.get(what, 0) + 1
            else:
                self.done[name] = self.done.get(name, 0) + 1

    def _create(self) -> None:
        if len(self.scratch) >= SCRATCH_MAX:
            return self._delete()
        again = bool(self._gone) and self._rng.random() < 0.5
        if again:
            name = self._gone.pop()
        else:
            self._made += 1
            name = f"scratch-{self._made}"
        partitions = self._rng.randrange(1, 4)
        topic = NewTopic(name, partitions, min(len(self._brokers), REPLICAS_MAX))
        self._admin.create_topics([topic], request_timeout=TIMEOUT_S)[name].result(2 * TIMEOUT_S)
        self._writer.event("administrators", "topic", topic=name, what="created")
        self.scratch[name] = partitions
        self._fill(name, partitions)

    def _fill(self, topic: str, partitions: int) -> None:
        """One record under way in each partition, and none given up for the next: librdkafka would take
        another producer epoch, and send again under it what may be in the log (as ``client`` says).
        """
        process = f"administrators/{topic}/{time.monotonic_ns()}"
        producer = Producer(
            {
                **self._access.confluent(),
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 1,
                **_CLIENT,
            }
        )

        def done(op: int) -> Callable[[Any, Any], None]:
            def on_delivery(error: Any, message: Any) -> None:
                if error is None:
                    self._writer.sent(process, op, offset=message.offset())
                else:
                    self._writer.unknown(process, op, error)

            return on_delivery

        for number in range(SCRATCH_RECORDS):
            partition, seq = number % partitions, number // partitions
            value = f"{topic}/{partition}/{process}/{seq}"
            op = self._writer.send(
                process, topic, partition, value, acks="all", session=process, seq=seq, idempotent=True
            )
            producer.produce(topic, value, partition=partition, on_delivery=done(op))
            is_round_full = partition == partitions - 1
            if is_round_full and producer.flush(TIMEOUT_S):
                return
        producer.flush(TIMEOUT_S)

    def _delete(self) -> None:
        if not self.scratch:
            return self._create()
        name = self._rng.choice(sorted(self.scratch))
        self._writer.event("administrators", "topic", topic=name, what="deleted")
        del self.scratch[name]
        self._admin.delete_topics([name], request_timeout=TIMEOUT_S)[name].result(2 * TIMEOUT_S)
        self._gone.append(name)

    def _move(self) -> None:
        """Other replicas for a partition; now and then the move is taken back at once."""
        place = KafkaPythonPartition(self._moving, self._rng.randrange(self._topics[self._moving]))
        replicas = self._rng.sample(self._brokers, 2)
        admin = KafkaAdminClient(**self._access.kafka_python(), request_timeout_ms=int(TIMEOUT_S * 1000))
        try:
            admin.alter_partition_reassignments({place: replicas})
            if self._rng.random() < 0.3:
                admin.alter_partition_reassignments({place: None})
        finally:
            admin.close()

    def _elect(self) -> None:
        topic = self._rng.choice(sorted(self._topics))
        places = [TopicPartition(topic, number) for number in range(self._topics[topic])]
        # confluent-kafka's takes no request_timeout, whatever its documentation says.
        elected = self._admin.elect_leaders(ElectionType.PREFERRED, places).result(2 * TIMEOUT_S)
        for error in elected.values():
            if error is not None and error.code() != KafkaError.ELECTION_NOT_NEEDED:
                raise KafkaException(error)

    def _alter(self) -> None:
        with connected(self._access, int(TIMEOUT_S * 1000)) as cluster:
            change_columns(cluster, self._rng)

    def _delete_records(self) -> None:
        topic = self._shrinking
        partition = self._rng.randrange(self._topics[topic])
        place = TopicPartition(topic, partition)
        latest = self._admin.list_offsets({place: OffsetSpec.latest()}, request_timeout=TIMEOUT_S)
        before = latest[place].result(2 * TIMEOUT_S).offset - KEPT_RECORDS
        if before <= 0:
            return
        self._writer.event("administrators", "deleted", topic=topic, partition=partition, before=before)
        asked = [TopicPartition(topic, partition, before)]
        self._admin.delete_records(asked, request_timeout=TIMEOUT_S)[place].result(2 * TIMEOUT_S)


def _kind_of(error: Exception) -> str:
    """An error's name, the broker's if it has one."""
    cause = error.args[0] if error.args else None
    return str(cause.name()) if isinstance(cause, KafkaError) else type(error).__name__
