"""A broker without a network that leads partitions over one log directory, and its log cleaner."""

import threading
import uuid

from sparklog.broker.disks.log_cleaner import LogCleaner
from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.ports import Ports
from sparklog.broker.replicas.replica_parts import ReplicaParts
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.model.settings.config import BrokerConfig, DynamicConfigs
from sparklog.records.envelope import split
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log_directory import LogDirectory

SETTINGS = {"log.cleanup.policy": "compact", "log.segment.bytes": "2000", "log.cleaner.backoff.ms": "10"}


class Nobody:
    """Fetchers and ISR proposals of a broker that is alone."""

    def start(self, partition, leader=None) -> None:
        pass

    stop = ask_leader_offsets = back_off = propose = start


class AtOnce:
    """Does work where it is given."""

    def submit(self, work) -> None:
        work()


class Room:
    """A broker that leads the partitions it is told of, over one log directory."""

    def __init__(self, folder, clock, settings=None) -> None:
        self.clock, self.folder = clock, folder
        self.config = BrokerConfig.parse({**SETTINGS, **(settings or {})})
        self.open()

    def open(self) -> None:
        self.directory = LogDirectory.open(str(self.folder), 1, "c", LocalDisk(), self.clock, boot_id="b")
        self.log_dirs = LogDirs([self.directory], self.config, new_guard=threading.Lock)
        ports = Ports(clock=self.clock, timer=None, executor=AtOnce(), new_guard=threading.Lock)
        self.parts = ReplicaParts.compose(
            BrokerId(1), self.config, self.log_dirs, ports, fetchers=Nobody(), proposals=Nobody()
        )
        self.replicas = self.parts.table
        self.parts.fence.broker_epoch = BrokerEpoch(1)
        self.log_dirs.load(executor=None)
        self.parts.logs.load()
        self.cleaner = LogCleaner(
            self.replicas.partitions,
            self.log_dirs,
            self.parts.settings,
            self.clock,
            guard=threading.Lock(),
            new_seed=lambda: 1,
        )

    def restart(self) -> None:
        self.parts.chores.close(clean_epoch=1)
        self.open()

    def lead(self, topic: str, epoch: int = 1):
        state = PartitionState(
            leader=BrokerId(1),
            leader_epoch=LeaderEpoch(epoch),
            isr=(BrokerId(1),),
            replicas=(BrokerId(1),),
            min_insync_replicas=1,
        )
        tp = TopicPartition(topic, 0)
        topic_id = uuid.uuid5(uuid.NAMESPACE_DNS, topic)
        assert self.parts.roles.become(tp, topic_id, state, {}, is_new=True) is ErrorCode.none
        return self.replicas.get(tp)

    def configure(self, **settings: object) -> None:
        """What the controller does when settings of all brokers change; ``_`` stands for ``.``."""
        configs = {name.replace("_", "."): str(value) for name, value in settings.items()}
        topics = [(partition.topic_partition.topic, {}) for partition in self.replicas.partitions()]
        self.parts.roles.configure(DynamicConfigs({}, configs), topics)

    def put(self, partition, count: int = 100, keys: int = 5) -> None:
        for nth in range(count):
            batch = bytearray(build_records_batch([Record(b"%d" % (nth % keys), b"v" * 30)], now_ms=1))
            assert (
                partition.leader_append.append(AppendRequest(batch, split(batch), 1), 0).error
                is ErrorCode.none
            )

    def state(self, topic: str):
        (found,) = [state for state in self.cleaner.states() if state.topic_partition.topic == topic]
        return found

    def record_count(self, partition) -> int:
        read = partition.log.read(0, 1 << 30, 1 << 60, at_least_one_batch=True)
        return sum(header.record_count for _, header in split(read_parts(read.parts)))


def clean_all(cleaner) -> int:
    """Clean until nothing is due, without pauses or threads; the number of rounds."""
    rounds = 0
    while (cleaning := cleaner.next()) is not None:
        for _ in cleaning.run():
            """No pause."""
        rounds += 1
    return rounds
