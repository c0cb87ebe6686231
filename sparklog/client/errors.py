"""The errors that callers of the client distinguish.

Each is a SparklogError. Its text names the cluster, the topic-partition and the remedy, so that it can be
shown to a user unchanged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import ConfigError, ErrorCode, KafkaError, SparklogError
from sparklog.model.ids import TopicPartition


class ClusterUnavailable(SparklogError):  # noqa: N818 (the field's word)
    """No broker could be reached, or none answered, until the deadline."""


class SecurityRefused(SparklogError):  # noqa: N818 (a state, not a mistake)
    """A broker, or this side, refuses connections for good: no later try can succeed as things are set."""


class LoginDenied(SecurityRefused):
    """A broker refuses this user, this password or this mechanism; it was reached, and is trusted."""


class ClientClosed(SparklogError):  # noqa: N818 (a state, not a mistake)
    """The client was closed before or during the call."""


HOPELESS: Final = (SecurityRefused, ConfigError)
"""What no retry can mend. A setting shows as wrong at a connection, if a file that it names is gone."""


class OffsetOutOfRange(KafkaError):  # noqa: N818 (Kafka's word)
    """The wanted offset is not in the log: its record was deleted, or was never written.

    ``[log_start_offset, log_end_offset)`` can be read now.
    """

    def __init__(
        self, topic_partition: TopicPartition, offset: int, log_start_offset: int, log_end_offset: int
    ) -> None:
        where = "was deleted" if offset < log_start_offset else "is beyond the end of the log"
        super().__init__(
            ErrorCode.offset_out_of_range,
            f"offset {offset} of {topic_partition} {where}; "
            f"offsets from {log_start_offset} up to, not including, "
            f"{log_end_offset} can be read",
        )
        self.topic_partition = topic_partition
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


def unreadable(topic_partition: TopicPartition, code: ErrorCode, bootstrap_servers: str) -> KafkaError:
    """The error of a fetch that no retry mends."""
    words = f"{topic_partition} at {bootstrap_servers}"
    if code is ErrorCode.message_too_large:
        words += ": the next row is too large as JSON; read the topic with Spark, as columns"
    return KafkaError(code, words)


class TopicRecreated(KafkaError):  # noqa: N818 (a state, not a mistake)
    """The topic was deleted and created again since its offsets were chosen: they mean nothing now."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        super().__init__(
            ErrorCode.inconsistent_topic_id,
            f"topic {topic_partition.topic!r} was deleted and created again "
            f"while {topic_partition} was being read; "
            "choose the offsets anew",
        )
        self.topic_partition = topic_partition


class RangeNotReadable(SparklogError):  # noqa: N818 (a state, not a mistake)
    """A range of offsets did not become readable in time."""

    def __init__(
        self, topic_partition: TopicPartition, offset: int, end_offset: int, waited_ms: int, why: str
    ) -> None:
        super().__init__(
            f"no record of {topic_partition} from offset {offset} on "
            f"(of a range up to {end_offset}) for {waited_ms} ms: "
            f"{why}"
        )
        self.topic_partition = topic_partition
        self.offset = offset


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """A batch that was given up, and why. ``maybe_written``: it may be in the log all the same."""

    topic_partition: TopicPartition
    code: ErrorCode
    message: str
    maybe_written: bool = False

    def __str__(self) -> str:
        note = " (it may have been written all the same)" if self.maybe_written else ""
        return f"{self.topic_partition}: {self.code.name.upper()}: {self.message}{note}"


class ProduceFailed(KafkaError):  # noqa: N818 (a state, not a mistake)
    """Batches that could not be written, in the order in which they failed."""

    def __init__(self, failures: Sequence[FailedBatch]) -> None:
        first = failures[0]
        more = f" (and {len(failures) - 1} more batches)" if len(failures) > 1 else ""
        super().__init__(first.code, f"cannot write to {first}{more}")
        self.failures = tuple(failures)

    def __str__(self) -> str:
        return self.message
