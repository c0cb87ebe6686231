"""Transactional producers in a dialogue: their requests, and what consumers and administrators see."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparklog.records.kafka.encode import Record, build_records_batch
from tests.interop.differential.talk import Pending, Talk

BEGAN_MS: Final = int(time.time() * 1_000)
AT_REST: Final = (b"Empty", b"CompleteCommit", b"CompleteAbort")
LAST_FOR_CLIENTS: Final = 3
"""Of AddPartitionsToTxn: 4 is what brokers ask each other."""
UNKNOWN_TOPIC: Final = 3
LATEST: Final = -1
EARLIEST: Final = -2


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: bytes


@dataclass(slots=True)
class Transactions:
    """``name`` is a transactional id and a group; ``topic`` belongs to this dialogue alone.

    A producer is what InitProducerId answered: ``producer_id`` and ``producer_epoch``.
    """

    talk: Talk
    name: str
    topic: Topic

    # ----------------------------------------------------------------------------- coordinator

    def init(
        self, name: str | None = "", *, timeout_ms: int = 60_000, identity: tuple[int, int] = (-1, -1)
    ) -> Any:
        """``name`` "" is this dialogue's transactional id."""
        return self.talk.ask("InitProducerId", **self._init(name, timeout_ms, identity))

    def init_until_done(self, *, timeout_ms: int = 60_000, identity: tuple[int, int] = (-1, -1)) -> Any:
        """Again and again while the coordinator ends the transaction before."""
        wanted = self._init("", timeout_ms, identity)
        return self.talk.until("InitProducerId", lambda answer: answer["error_code"] == 0, **wanted)

    def _init(self, name: str | None, timeout_ms: int, identity: tuple[int, int]) -> dict[str, Any]:
        return {
            "transactional_id": self.name if name == "" else name,
            "transaction_timeout_ms": timeout_ms,
            "producer_id": identity[0],
            "producer_epoch": identity[1],
        }

    def add(self, producer: Any, *topics: str, partitions: Sequence[int] = (0,), name: str = "") -> Any:
        wanted = [{"name": topic, "partitions": partitions} for topic in topics or (self.topic.name,)]
        return self.talk.ask(
            "AddPartitionsToTxn",
            version=min(self.talk.level, LAST_FOR_CLIENTS),
            v3_and_below_transactional_id=name or self.name,
            v3_and_below_producer_id=producer["producer_id"],
            v3_and_below_producer_epoch=producer["producer_epoch"],
            v3_and_below_topics=wanted,
        )

    def verify(self, *asked: tuple[str, Any, Sequence[int]], only: bool = True) -> Any:
        """What one broker asks another: transactional id, producer and partitions of each transaction."""
        transactions = [
            {
                "transactional_id": name,
                "producer_id": producer["producer_id"],
                "producer_epoch": producer["producer_epoch"],
                "verify_only": only,
                "topics": [{"name": self.topic.name, "partitions": partitions}],
            }
            for name, producer, partitions in asked
        ]
        return self.talk.ask("AddPartitionsToTxn", version=4, transactions=transactions)

    def add_group(self, producer: Any, group: str | None = None, name: str = "") -> Any:
        group_id = self.name if group is None else group
        return self.talk.ask("AddOffsetsToTxn", **self._of(producer, name), group_id=group_id)

    def send_end(self, producer: Any, *, commits: bool, name: str = "") -> Pending:
        return self.talk.send("EndTxn", **self._of(producer, name), committed=commits)

    def end(self, producer: Any, *, commits: bool, name: str = "") -> Any:
        """Ask for the end, and if it is begun wait until it is complete."""
        answer = self.send_end(producer, commits=commits, name=name).answer()
        if not isinstance(answer, str) and answer["error_code"] == 0:
            self.settle(name)
        return answer

    def settle(self, name: str = "") -> Any:
        """Wait until no transaction of the id is open or ending: how it is described then."""
        return self.talk.until(
            "DescribeTransactions",
            lambda answer: answer["transaction_states"][0]["transaction_state"] in AT_REST,
            transactional_ids=[name or self.name],
        )

    def settle_or_open(self) -> Any:
        """Wait until no transaction of the id is ending."""
        return self.talk.until(
            "DescribeTransactions",
            lambda answer: answer["transaction_states"][0]["transaction_state"] in (*AT_REST, b"Ongoing"),
            transactional_ids=[self.name],
        )

    def _of(self, producer: Any, name: str) -> dict[str, Any]:
        return {
            "transactional_id": name or self.name,
            "producer_id": producer["producer_id"],
            "producer_epoch": producer["producer_epoch"],
        }

    # ------------------------------------------------------------------------------- partitions

    def produce(
        self,
        producer: Any,
        sequence: int = 0,
        *,
        partition: int = 0,
        name: str | None = "",
        count: int = 1,
        transactional: bool = True,
        by: str = "",
    ) -> Any:
        records = batch(producer, sequence, count=count, transactional=transactional)
        return self.produce_all({partition: records}, name=name, by=by)

    def produce_all(self, batches: dict[int, bytes], *, name: str | None = "", by: str = "") -> Any:
        data = [{"index": number, "records": records} for number, records in batches.items()]
        return self.talk.ask(
            "Produce",
            by=by,
            transactional_id=self.name if name == "" else name,
            timeout_ms=10_000,
            topic_data=[{"name": self.topic.name, "partition_data": data}],
        )

    def read(self, offset: int = 0, *, isolation: int = 1, partition: int = 0, size: int = 1 << 20) -> Any:
        wanted = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": size}
        one = {"topic": self.topic.name, "topic_id": self.topic.id, "partitions": [wanted]}
        fields = {"max_bytes": size, "isolation_level": isolation, "topics": [one]}
        return self.talk.ask("Fetch", **fields)

    def offset_at(self, time_ms: int = LATEST, *, isolation: int = 1, partition: int = 0) -> Any:
        wanted = {"partition_index": partition, "timestamp": time_ms}
        topics = [{"name": self.topic.name, "partitions": [wanted]}]
        return self.talk.ask("ListOffsets", isolation_level=isolation, topics=topics)

    def seen(self, *offsets: int) -> None:
        """What consumers of both kinds see of the first partition."""
        for isolation in (0, 1):
            self.offset_at(isolation=isolation)
            for offset in offsets or (0,):
                self.read(offset, isolation=isolation)

    # --------------------------------------------------------------------------- administration

    def describe(self, *names: str) -> Any:
        return self.talk.ask("DescribeTransactions", transactional_ids=names or [self.name])

    def listed(self, *states: str, producer_ids: Sequence[int] = ()) -> None:
        """How the ids are listed that begin with this dialogue's name."""
        answer = self.talk.ask("ListTransactions", state_filters=states, producer_id_filters=producer_ids)
        mine = [
            one
            for one in answer["transaction_states"]
            if one["transactional_id"].startswith(self.name.encode())
        ]
        answer["transaction_states"] = mine

    def producers(self, *partitions: int, topic: str | None = None) -> Any:
        wanted = [
            {"name": self.topic.name if topic is None else topic, "partition_indexes": partitions or (0,)}
        ]
        return self.talk.ask("DescribeProducers", topics=wanted)

    def mark(
        self,
        producer: Any,
        *,
        commits: bool = False,
        coordinator_epoch: int = 0,
        topic: str | None = None,
        partitions: Sequence[int] = (0,),
    ) -> Any:
        """Write a marker, as a coordinator or an administrator does."""
        marker = {
            "producer_id": producer["producer_id"],
            "producer_epoch": producer["producer_epoch"],
            "transaction_result": commits,
            "topics": [
                {"name": self.topic.name if topic is None else topic, "partition_indexes": partitions}
            ],
            "coordinator_epoch": coordinator_epoch,
        }
        return self.talk.ask("WriteTxnMarkers", markers=[marker])

    def delete_topic(self) -> None:
        """Until nobody finds it any more."""
        names = [self.topic.name]
        self.talk.ask("DeleteTopics", version=5, topic_names=names, timeout_ms=20_000)
        self.talk.until(
            "Metadata",
            lambda answer: answer["topics"][0]["error_code"] == UNKNOWN_TOPIC,
            version=4,
            topics=[{"name": self.topic.name}],
        )

    # ---------------------------------------------------------------------------------- offsets

    def commit_offset(
        self,
        producer: Any,
        offset: int = 5,
        *,
        group: str | None = None,
        name: str = "",
        topic: str | None = None,
        partitions: Sequence[int] = (0,),
        metadata: str | None = "m",
        generation: int = -1,
        member: str = "",
        instance: str | None = None,
    ) -> Any:
        parts = [
            {"partition_index": number, "committed_offset": offset, "committed_metadata": metadata}
            for number in partitions
        ]
        return self.talk.ask(
            "TxnOffsetCommit",
            **self._of(producer, name),
            group_id=self.name if group is None else group,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            topics=[{"name": self.topic.name if topic is None else topic, "partitions": parts}],
        )

    def committed(self, group: str | None = None) -> None:
        """The group's offsets, as they are and as a consumer that waits for transactions is told."""
        topics = [{"name": self.topic.name, "partition_indexes": [0, 1]}]
        wanted = {"group_id": self.name if group is None else group, "topics": topics}
        for is_stable in (0, 1):
            for version in (6, 7, 8):
                fields = {**wanted, "groups": [wanted], "require_stable": is_stable}
                self.talk.ask("OffsetFetch", version=version, **fields)


def batch(producer: Any, sequence: int, *, count: int = 1, transactional: bool = True) -> bytes:
    """``count`` records with the producer's identity; the times of records are one second apart."""
    records = [
        Record(key=b"k", value=b"v", timestamp_ms=BEGAN_MS + 1_000 * (sequence + number))
        for number in range(count)
    ]
    return build_records_batch(
        records,
        now_ms=BEGAN_MS,
        producer_id=producer["producer_id"],
        producer_epoch=producer["producer_epoch"],
        base_sequence=sequence,
        is_transactional=transactional,
    )


def older(producer: Any, by: int = 1) -> dict[str, int]:
    """The producer as it was some epochs before; a negative number is for a later one."""
    return {
        "producer_id": producer["producer_id"],
        "producer_epoch": producer["producer_epoch"] - by,
    }
