"""The applied state of one partition: what its records below the high watermark say.

Loading and living change it by the same function, ``apply``, in log order. So a machine that lived and a
machine that replays the log have the same applied state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.group.records import GroupKey, GroupValue, OffsetKey, OffsetValue
from sparklog.model.ids import TopicPartition


@dataclass(slots=True)
class AppliedState:
    """Groups and committed offsets by group id; ``offsets`` has no empty entries."""

    groups: dict[str, GroupValue] = field(default_factory=dict)
    offsets: dict[str, dict[TopicPartition, OffsetValue]] = field(default_factory=dict)

    def apply(self, record: StateRecord) -> None:
        """Take in one record; records of other kinds have no place here and raise TypeError."""
        match record:
            case StateRecord(GroupKey(group_id), None):
                self.groups.pop(group_id, None)
            case StateRecord(GroupKey(group_id), GroupValue() as value):
                self.groups[group_id] = value
            case StateRecord(OffsetKey(group_id, topic_partition), None):
                offsets = self.offsets.get(group_id)
                if offsets is not None:
                    offsets.pop(topic_partition, None)
                    if not offsets:
                        del self.offsets[group_id]
            case StateRecord(OffsetKey(group_id, topic_partition), OffsetValue() as value):
                self.offsets.setdefault(group_id, {})[topic_partition] = value
            case _:
                raise TypeError(f"{record} is no record of a group")

    def offsets_of(self, group_id: str) -> Mapping[TopicPartition, OffsetValue]:
        """The committed offsets of a group."""
        return self.offsets.get(group_id, {})

    def as_records(self) -> dict[GroupKey | OffsetKey, GroupValue | OffsetValue]:
        """The latest record of each key, as compaction would leave them."""
        records: dict[GroupKey | OffsetKey, GroupValue | OffsetValue] = {
            GroupKey(group_id): value for group_id, value in self.groups.items()
        }
        for group_id, offsets in self.offsets.items():
            for topic_partition, value in offsets.items():
                records[OffsetKey(group_id, topic_partition)] = value
        return records
