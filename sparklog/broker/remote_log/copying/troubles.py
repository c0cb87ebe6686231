"""What is wrong with the history of one partition, and keeps no other waiting.

An object that is gone, cut or damaged, or a head that cannot be read, is in the log once, with its remedy,
for as long as it stays the same; the metric counts the partitions. A store or a ZooKeeper that does not
answer is no trouble of a partition: what would be tried for the others would wait as long.
"""

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sparklog.core.remote_log.page import ManifestError
from sparklog.model.ids import TopicPartition
from sparklog.remote.store import Failure, RemoteStoreError

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Troubles:
    """The troubles of the partitions that are led here, in one kind of work."""

    _told: dict[TopicPartition, str] = field(default_factory=dict)

    @property
    def partitions(self) -> set[TopicPartition]:
        return set(self._told)

    def told(self, topic_partition: TopicPartition) -> str:
        """What is wrong with this partition; empty if nothing is."""
        return self._told.get(topic_partition, "")

    def forget_all_but(self, led: Collection[TopicPartition]) -> None:
        """What is led elsewhere now, or deleted, is no trouble here any more."""
        self._told = {one: told for one, told in self._told.items() if one in led}

    @contextmanager
    def of(self, topic_partition: TopicPartition) -> Iterator[None]:
        """Whatever of its history turns out to be gone or damaged within the block ends the block alone."""
        try:
            yield
        except (ManifestError, RemoteStoreError) as error:
            if not is_of_one_object(error):
                raise
            if self._told.get(topic_partition) != str(error):
                self._told[topic_partition] = str(error)
                logger.error(
                    "%s: nothing of its history in the store is copied or deleted until this is mended: %s. "
                    "Put back what is gone or damaged from a backup, or delete the topic",
                    topic_partition,
                    error,
                )
        else:
            self._told.pop(topic_partition, None)


def is_of_one_object(error: ManifestError | RemoteStoreError) -> bool:
    """Whether an object is gone or damaged, and the store itself may be well."""
    return isinstance(error, ManifestError) or error.failure in (Failure.MISSING, Failure.SHORT)
