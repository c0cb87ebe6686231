"""Troubles of one partition's history, which keep no other partition waiting.

An object that is gone, cut or damaged, or a head that cannot be read, is logged once with its remedy, until
that changes; a metric counts the partitions. A store or a ZooKeeper that does not answer is not a partition's
trouble, because the other partitions would wait as long.
"""

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.remote_log.page import ManifestError
from sparklog.model.ids import TopicPartition
from sparklog.remote.store import Failure, RemoteStoreError

logger: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Troubles:
    """The troubles of the partitions that are led here, in one kind of work."""

    _reported: dict[TopicPartition, str] = field(default_factory=dict)
    """The errors in the log: of partitions whose last block failed."""

    @property
    def partitions(self) -> set[TopicPartition]:
        return set(self._reported)

    def reported(self, topic_partition: TopicPartition) -> str:
        """The trouble of this partition in words; empty if it has none."""
        return self._reported.get(topic_partition, "")

    def forget_all_but(self, led: Collection[TopicPartition]) -> None:
        """Forget partitions that are led elsewhere by now, or deleted."""
        self._reported = {
            topic_partition: text
            for topic_partition, text in self._reported.items()
            if topic_partition in led
        }

    @contextmanager
    def of(self, topic_partition: TopicPartition) -> Iterator[None]:
        """A block of work for one partition. A gone or damaged object of it ends the block, and raises
        nothing.
        """
        try:
            yield
        except (ManifestError, RemoteStoreError) as error:
            if not is_of_one_object(error):
                raise  # the store itself: it fails for every partition
            if self._reported.get(topic_partition) != str(error):
                self._reported[topic_partition] = str(error)
                logger.error(
                    "%s: nothing of its history in the store is copied or deleted until this is mended: %s. "
                    "Put back what is gone or damaged from a backup, or delete the topic",
                    topic_partition,
                    error,
                )
        else:
            self._reported.pop(topic_partition, None)


def is_of_one_object(error: ManifestError | RemoteStoreError) -> bool:
    """Whether one object is gone or damaged, while the store itself may be well."""
    return isinstance(error, ManifestError) or error.failure in (Failure.MISSING, Failure.SHORT)
