"""A cut: one state of several partitions, in which every atomic write is whole or absent.

Two rounds of questions to all leaders make it: (1) the high watermarks; (2) when all have answered, again the
high watermark, the last stable offset that counts only transactions of Kafka's clients, and the numbers of
the writes that are open or have had a marker since (1). A write that any leader names is hidden in all
partitions. What is shown:

    below the high watermark of (2)         batches of other writes that are not aborted
    below that last stable offset as well   all other batches that are not aborted

It holds because whatever is shown of a write has its commit marker below the high watermark of (1) in that
partition. So the write was decided before (1), all its rows were acknowledged by then, and (2) has them
everywhere. An abort marker of one member does not say whether its write was committed, so none is asked for
more than its number.

Transactions of Kafka's clients are whole in each partition, and not over several.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.write_ids import is_of_a_write, write_and_member
from sparklog.records.envelope import BatchHeader

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a leader says in the second round."""

    high_watermark: int
    stable_offset: int
    writes: frozenset[int]


@dataclass(frozen=True, slots=True)
class PartitionCut:
    """What a reader of one partition sees. Batches of aborted transactions are hidden besides."""

    high_watermark: int
    stable_offset: int
    hidden_writes: frozenset[int]

    def hides(self, header: BatchHeader) -> bool:
        if header.is_transactional and is_of_a_write(header.producer_id):
            return write_and_member(header.producer_id)[0] in self.hidden_writes
        return header.last_offset >= self.stable_offset


@dataclass(frozen=True, slots=True)
class Cut:
    """By partition the high watermark and the last stable offset; and the writes that are hidden in all."""

    ends: Mapping[TopicPartition, tuple[int, int]]
    hidden_writes: frozenset[int]

    def of(self, topic_partition: TopicPartition) -> PartitionCut | None:
        """None for a partition that was not there when the cut was made."""
        ends = self.ends.get(topic_partition)
        return None if ends is None else PartitionCut(*ends, self.hidden_writes)


def cut_of(answers: Mapping[TopicPartition, Answer]) -> Cut:
    """From the answers to the second round."""
    ends = {
        topic_partition: (answer.high_watermark, answer.stable_offset)
        for topic_partition, answer in answers.items()
    }
    return Cut(ends, frozenset().union(*(answer.writes for answer in answers.values())))


def encode(cut: Cut) -> bytes:
    """JSON: version, hidden write numbers, and by topic ``[[partition, high watermark, stable offset]]``."""
    ends: dict[str, list[tuple[int, int, int]]] = {}
    for topic_partition in sorted(cut.ends):
        rows = ends.setdefault(topic_partition.topic, [])
        rows.append((topic_partition.partition, *cut.ends[topic_partition]))
    content = {"version": VERSION, "hidden": sorted(cut.hidden_writes), "ends": ends}
    return json.dumps(content, separators=(",", ":")).encode()


def decode(data: bytes) -> Cut:
    """SparklogError for what this release did not write."""
    try:
        content = json.loads(data)
        if content["version"] == VERSION:
            ends = {
                TopicPartition(topic, int(partition)): (int(high_watermark), int(stable_offset))
                for topic, rows in content["ends"].items()
                for partition, high_watermark, stable_offset in rows
            }
            return Cut(ends, frozenset(int(number) for number in content["hidden"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SparklogError(
            f"the cut that the tasks agreed upon is damaged ({error!r}); run the query again"
        ) from error
    raise SparklogError(
        f"the cut that the tasks agreed upon has version {content['version']}, this release knows {VERSION}; "
        "install one release of sparklog on the driver and all executors"
    )
