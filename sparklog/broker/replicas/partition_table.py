"""The table of the partitions that this broker holds a replica of. It knows nothing of roles or disks."""

from sparklog.broker.partition.partition import Partition
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicId, TopicPartition


class PartitionTable:
    """Read by any thread. Changed within the guard of ``Roles``, and before the first role."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, Partition] = {}
        self._names: dict[TopicId, str] = {}
        """The name of each topic that has a partition in the table."""

    def get(self, topic_partition: TopicPartition) -> Partition | None:
        return self._partitions.get(topic_partition)

    def find(self, topic_partition: TopicPartition, topic_id: TopicId | None = None) -> Partition | ErrorCode:
        """The partition, or the error for a client that asked this broker."""
        partition = self._partitions.get(topic_partition)
        if partition is None:
            return ErrorCode.unknown_topic_or_partition
        if topic_id is not None and partition.topic_id != topic_id:
            return ErrorCode.inconsistent_topic_id
        return partition

    def partitions(self) -> list[Partition]:
        return list(self._partitions.values())

    def topic_name(self, topic_id: TopicId) -> str | None:
        """The name of a topic of which this broker holds a replica."""
        return self._names.get(topic_id)

    def add(self, partition: Partition) -> None:
        self._names[partition.topic_id] = partition.topic_partition.topic
        self._partitions[partition.topic_partition] = partition

    def remove(self, partition: Partition) -> None:
        del self._partitions[partition.topic_partition]
        if all(other.topic_id != partition.topic_id for other in self.partitions()):
            self._names.pop(partition.topic_id, None)
