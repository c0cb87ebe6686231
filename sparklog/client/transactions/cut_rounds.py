"""How a cut is made and agreed upon, as a conversation: what is asked, of whom, in which order.

PURE. Each generator yields questions and is sent their answers; its driver finds the leaders and the
coordinator, tries again what failed, and gives up when its time is over.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sparklog.client.transactions.cut import Answer, Cut, cut_of, decode, encode
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import AGREED_BYTES_MAX

ATTEMPTS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class HighWatermarks:
    """Asks each leader for its high watermark. Answer: by partition."""

    topic_partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Visibilities:
    """Asks each leader what is open, and what was ended since an offset. Answer: by partition, or None if one
    cannot say any more what was ended. (``is_last``: that is an error then.)
    """

    since: Mapping[TopicPartition, int]
    is_last: bool


@dataclass(frozen=True, slots=True)
class Agreed:
    """Asks the coordinator for what counts, and puts ``value`` if nothing does. Answer: that, or None."""

    value: bytes | None = None


Question = HighWatermarks | Visibilities | Agreed
Conversation = Generator[Question, Any, Cut]


def agreed(topic_partitions: Callable[[], Iterable[TopicPartition]]) -> Conversation:
    """The cut that was agreed upon; the first that asks makes it, of ``topic_partitions``.

    SparklogError for more partitions than the cluster keeps a cut of.
    """
    value: bytes | None = yield Agreed()
    if value is None:
        cut = yield from made(topic_partitions())
        value = encode(cut)
        if len(value) > AGREED_BYTES_MAX:
            raise _too_large(cut, value)
        value = yield Agreed(value)
        assert value is not None
    return decode(value)


def _too_large(cut: Cut, value: bytes) -> SparklogError:
    return SparklogError(
        f"the cut of a batch read over {len(cut.ends):,} partitions takes {len(value):,} bytes, and the "
        f"cluster keeps at most {AGREED_BYTES_MAX:,}, about 20,000 partitions: read fewer of them at a time, "
        "or set kafka.isolation.level=read_uncommitted, which needs no cut"
    )


def made(topic_partitions: Iterable[TopicPartition]) -> Conversation:
    """A new cut. Where the second round comes too late for a leader, both begin again."""
    wanted = tuple(topic_partitions)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        since: Mapping[TopicPartition, int] = yield HighWatermarks(wanted)
        answers: Mapping[TopicPartition, Answer] | None = yield Visibilities(since, attempt == ATTEMPTS_MAX)
        if answers is not None:
            return cut_of(answers)
    raise AssertionError("the last question has an answer or an error")
