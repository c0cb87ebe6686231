"""How a partition is made around an open log."""

from collections.abc import Callable
from dataclasses import dataclass

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.partition.partition import Partition
from sparklog.broker.partition.topic_traffic import TopicTraffic
from sparklog.broker.ports import Ports
from sparklog.core.replication.actions import OutwardEffect
from sparklog.core.replication.replica import Replica
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.storage.log import Log


@dataclass(frozen=True, slots=True)
class PartitionMaker:
    """What every partition of this broker shares."""

    broker_id: BrokerId
    settings: CurrentSettings
    ports: Ports
    outlet: Callable[[Partition, OutwardEffect], None]
    """Carries out the outward effects."""
    why_no_room: Callable[[TopicPartition, int], str]
    """As ``FreeSpaces``."""
    traffic: TopicTraffic

    def make(self, topic_partition: TopicPartition, log: Log, high_watermark: int) -> Partition:
        """A partition without a role."""
        config, new_guard = self.settings.now, self.ports.new_guard
        replica = Replica(
            broker_id=self.broker_id,
            topic_partition=topic_partition,
            epochs=log.epochs,
            marks=Watermarks(
                log.log_start_offset,
                high_watermark,
                log.log_end_offset,
                log.recovery_point if config.get_str("log.flush.acks") == "fsync" else None,
                local_start_offset=log.local_start_offset,
            ),
            lag_max_ms=config.get_int("replica.lag.time.max.ms"),
        )
        replica.marks.clamp()
        return Partition(
            replica,
            log,
            guard=new_guard(),
            delivery=new_guard(),
            outlet=self.outlet,
            clock=self.ports.clock,
            flushing=new_guard(),
            why_no_room=self.why_no_room,
            counts=self.traffic.of(topic_partition.topic),
        )
