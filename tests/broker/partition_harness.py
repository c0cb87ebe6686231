"""One partition over a real log, and the effects that left it, for the tests of its shell."""

import threading
import uuid

from sparklog.broker.partition.answers import ReadRequest
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.partition.append_results import Appended, AppendResult, AwaitsReplicas
from sparklog.broker.partition.partition import Partition
from sparklog.broker.partition.topic_traffic import TopicCounts
from sparklog.core.replication.replica import Replica
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.network.clock import SystemClock
from sparklog.records.envelope import build_envelope, split, stamp
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig

TP = TopicPartition("quakes", 0)
TOPIC_ID = uuid.UUID(int=7)


def batch(
    records: int = 1,
    *,
    producer_id: int = -1,
    producer_epoch: int = 0,
    sequence: int = -1,
    payload: bytes = b"x" * 20,
) -> bytearray:
    return bytearray(
        build_envelope(
            payload,
            attributes=0,
            record_count=records,
            last_offset_delta=records - 1,
            base_timestamp_ms=1_000,
            max_timestamp_ms=1_000,
            producer_id=producer_id,
            producer_epoch=producer_epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
        )
    )


def once_replicated(result: AppendResult) -> AppendResult:
    """The result when the replicas that it awaits have the batches."""
    return result.appended if isinstance(result, AwaitsReplicas) else result


def base_offset(result: AppendResult) -> int:
    """-1 unless the batches are in the log."""
    found = once_replicated(result)
    return found.base_offset if isinstance(found, Appended) else -1


class Harness:
    """A partition of broker 1, and the effects that left it."""

    def __init__(self, directory, **options) -> None:
        self.log = Log.open(
            str(directory / "quakes-0"), TP, TOPIC_ID, LogConfig(), LocalDisk(), SystemClock(),
            recovery_point=0, clean=True,
        )  # fmt: skip
        replica = Replica(BrokerId(1), TP, self.log.epochs, Watermarks(), 10_000)
        self.effects = []
        self.partition = Partition(
            replica,
            self.log,
            guard=threading.Lock(),
            delivery=threading.Lock(),
            flushing=threading.Lock(),
            outlet=lambda _, effect: self.effects.append(effect),
            clock=SystemClock(),
            counts=TopicCounts(threading.Lock()),
            **options,
        )

    def told(
        self, leader: int, epoch: int, isr=(1, 2), replicas=(1, 2), lost_in_epoch: int = -1
    ) -> ErrorCode:
        state = PartitionState(
            leader=BrokerId(leader),
            leader_epoch=LeaderEpoch(epoch),
            isr=tuple(map(BrokerId, isr)),
            replicas=tuple(map(BrokerId, replicas)),
            min_insync_replicas=len(replicas),
            lost_in_epoch=LeaderEpoch(lost_in_epoch),
        )
        error = self.partition.on_leader_and_isr(state, broker_epoch=BrokerEpoch(10))
        self.partition.log_guard.deliver()
        return error

    def produce(self, records: bytearray, acks: int = -1, token: int = 1, **facts):
        request = AppendRequest(records, split(records), acks, **facts)
        return self.partition.leader_append.append(request, token)

    def follower_fetches(self, offset: int, last_epoch: int = -1, epoch: int = -1):
        request = ReadRequest(
            offset, 1 << 20, epoch, last_epoch, follower=BrokerId(2), follower_epoch=BrokerEpoch(20)
        )
        return self.partition.reads.read(request, at_least_one_batch=True)

    def consumer_fetches(self, offset: int):
        return self.partition.reads.read(ReadRequest(offset, 1 << 20), at_least_one_batch=True)

    def taken(self):
        effects, self.effects = self.effects, []
        return effects


def take_over(
    partition, records: bytes, *, leader_epoch: int, fetch_offset: int = 0, high_watermark: int = 0
):
    return partition.follower_append.append(
        records, split(records), leader_epoch=leader_epoch, fetch_offset=fetch_offset,
        leader_high_watermark=high_watermark, leader_log_start_offset=0,
    )  # fmt: skip


def stamped(offset: int, epoch: int, records: int = 1) -> bytearray:
    made = batch(records)
    stamp(made, 0, offset, epoch)
    return made
