"""Records that a query should have read and cannot: one error, or one warning, that names all of them.

A loss is an offset range of one partition, with the reason. The losses of a plan or a task are reported
together, as an error (option ``failOnDataLoss``, true by default) or as a warning. Each range is reported
once: by the plan that leaves it out of the tasks' ranges, or by the task that cannot read it.

The words "some data may have been missed" are those of Spark's Kafka connector, which people search for.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from sparklog.client.admin import Admin
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import KafkaError, SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import TOPIC_RESOURCE

NAMED_MAX: Final = 10
"""Losses that a message names one by one; the others are counted."""

FOR_EVER: Final = "-1"
"""The value of ``retention.ms`` and ``retention.bytes`` that deletes nothing."""

logger: Final = logging.getLogger(__name__)


class Reason(Enum):
    """Why offsets cannot be read; the value is the half of a sentence."""

    DELETED = "retention or DeleteRecords deleted them"
    DELETE_RECORDS = "DeleteRecords deleted them (the topic has no retention)"
    TOPIC_DELETED = "the topic was deleted"
    TOPIC_RECREATED = "the topic was deleted and created again"
    BEYOND_THE_LOG = "the log ends before them (they were not written yet, or an unclean election cut it)"
    LOG_CUT = "the log ends before them (an unclean election cut it, or the topic was created again)"


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets ``[start_offset, end_offset)`` of a partition; all from the start on if the end is None."""

    topic_partition: TopicPartition
    start_offset: int
    end_offset: int | None
    reason: Reason
    sign: str = ""
    """The evidence in words, if that says more than the range."""

    def __str__(self) -> str:
        sign = f"; {self.sign}" if self.sign else ""
        return f"{self.topic_partition}: {self._range}: {self.reason.value}{sign}"

    @property
    def _range(self) -> str:
        if self.end_offset is None:
            return f"all offsets from {self.start_offset} on are lost"
        count = self.end_offset - self.start_offset
        noun = "offset is" if count == 1 else "offsets are"
        return f"{count} {noun} lost (from {self.start_offset} up to, not including, {self.end_offset})"

    def followed_by(self, other: "Loss") -> "Loss | None":
        """Both as one loss, if ``other`` begins where this one ends; else None."""
        same = (self.topic_partition, self.end_offset, self.reason) == (
            other.topic_partition,
            other.start_offset,
            other.reason,
        )
        return replace(self, end_offset=other.end_offset) if same else None


class DataLost(SparklogError):  # noqa: N818 (a state, not a mistake)
    """Records that the query should have read are gone; ``losses`` are the ranges."""

    def __init__(self, losses: Iterable[Loss]) -> None:
        self.losses = tuple(losses)
        super().__init__(
            f"{_text(self.losses)}. Some data may have been missed. To go on with what is left, set option "
            "failOnDataLoss to false"
        )

    def __reduce__(self) -> tuple[type["DataLost"], tuple[tuple[Loss, ...]]]:
        return DataLost, (self.losses,)


class Losses:
    """The losses of one plan or one task, until they are reported."""

    def __init__(self, is_fatal: bool) -> None:
        self.is_fatal = is_fatal
        self._found: list[Loss] = []

    def note(self, loss: Loss) -> None:
        """Keep a loss for ``tell``. One that begins where the last one ends is joined to it."""
        joined = self._found[-1].followed_by(loss) if self._found else None
        if joined is not None:
            self._found[-1] = joined
        else:
            self._found.append(loss)

    def tell(self) -> None:
        """Report the losses: raise DataLost if they are fatal, otherwise log one warning."""
        found, self._found = self._found, []
        if not found:
            return
        if self.is_fatal:
            raise DataLost(found)
        logger.warning(
            "%s. Some data may have been missed; the query goes on with what is left", _text(found)
        )


def deletion_reason(cluster: ClusterClient, topic: str) -> Reason:
    """The reason of a topic's missing first records, by its settings."""
    try:
        settings = Admin(cluster).describe_configs(TOPIC_RESOURCE, [topic])[topic]
    except KafkaError:  # the topic is gone, or its settings are not for us: either may have been
        return Reason.DELETED
    deletes = "delete" in settings["cleanup.policy"][0]
    is_kept = all(settings[name][0] == FOR_EVER for name in ("retention.ms", "retention.bytes"))
    return Reason.DELETED if deletes and not is_kept else Reason.DELETE_RECORDS


def _text(losses: Iterable[Loss]) -> str:
    found = list(losses)
    named = "; ".join(str(loss) for loss in found[:NAMED_MAX])
    more = len(found) - NAMED_MAX
    return f"{named}; and losses in {more} more ranges" if more > 0 else named
