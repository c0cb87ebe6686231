"""The applied state of one partition: what its records below the high watermark say.

Loading and living change it by the same function, ``apply``, in log order. So a machine that lived and a
machine that replays the log have the same applied state.

An offset of an open transaction is *pending*. When its transaction is committed it counts, unless a later
record of the log counts already: of all that is committed, the latest in the log wins, in whichever order the
markers come.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.group.records import GroupKey, GroupValue, OffsetKey, OffsetValue
from sparklog.model.ids import TopicPartition


class PendingOffset(NamedTuple):
    """An offset of an open transaction. Of two, the later one in the log has the higher ``number``.

    ``value`` is None once a record that counts has come after it.
    """

    number: int
    value: OffsetValue | None


@dataclass(slots=True)
class AppliedState:
    """Groups and committed offsets by group id; ``offsets`` has no empty entries.

    ``pending``: offsets of open transactions, which count once their transaction is committed. One that a
    later record of the log has replaced stays, without a value: its partition is unstable until the end.
    """

    groups: dict[str, GroupValue] = field(default_factory=dict)
    offsets: dict[str, dict[TopicPartition, OffsetValue]] = field(default_factory=dict)
    pending: dict[int, dict[OffsetKey, PendingOffset]] = field(default_factory=dict)
    """By producer id."""
    unstable: dict[str, Counter[TopicPartition]] = field(default_factory=dict)
    """By group id, how many transactions have an offset of each partition; no empty entries."""
    records: int = 0
    """How many pending offsets were taken in."""

    def apply(self, record: StateRecord) -> None:
        """Take in one record; records of other kinds have no place here and raise TypeError."""
        if isinstance(record.key, OffsetKey):
            self._replace_pending(record.key, self.records)
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

    def apply_pending(self, record: StateRecord, producer_id: int) -> None:
        """Take in an offset of a producer's open transaction; a tombstone there has no meaning."""
        key, value = record.key, record.value
        if not isinstance(key, OffsetKey) or not isinstance(value, OffsetValue):
            return
        of_producer = self.pending.setdefault(producer_id, {})
        if key not in of_producer:
            self.unstable.setdefault(key.group_id, Counter())[key.topic_partition] += 1
        self.records += 1
        of_producer[key] = PendingOffset(self.records, value)

    def end(self, producer_id: int, is_commit: bool) -> dict[OffsetKey, OffsetValue]:
        """The producer's transaction has ended; returns the offsets that count from now on."""
        ended = self.pending.pop(producer_id, {})
        for key in ended:
            of_group = self.unstable[key.group_id]
            of_group[key.topic_partition] -= 1
            self.unstable[key.group_id] = of_group = +of_group
            if not of_group:
                del self.unstable[key.group_id]
        committed: dict[OffsetKey, OffsetValue] = {}
        for key, (number, value) in ended.items() if is_commit else ():
            if value is not None:
                self._replace_pending(key, number)
                self.offsets.setdefault(key.group_id, {})[key.topic_partition] = value
                committed[key] = value
        return committed

    def _replace_pending(self, key: OffsetKey, number: int) -> None:
        """A record that counts comes after the pending ones up to ``number``, which lose their value."""
        if key.topic_partition not in self.unstable_of(key.group_id):
            return
        for of_producer in self.pending.values():
            known = of_producer.get(key)
            if known is not None and known.number <= number:
                of_producer[key] = PendingOffset(known.number, None)

    def unstable_of(self, group_id: str) -> Collection[TopicPartition]:
        """The partitions of a group with an offset in an open transaction."""
        return self.unstable.get(group_id, ())

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
