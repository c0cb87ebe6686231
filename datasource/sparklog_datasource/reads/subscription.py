"""The partitions of a read, by ``assign``, ``subscribe`` or ``subscribePattern``.

A pattern may match anywhere in a topic's name, as with Kafka's connector (``t.*`` matches ``xt1``, too). It
never matches an internal topic.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.model.errors import ConfigError
from sparklog.model.ids import TopicPartition, topic_name_problem
from sparklog_datasource.options.option_names import ASSIGN, STRATEGIES, SUBSCRIBE
from sparklog_datasource.options.option_parsing import Options
from sparklog_datasource.reads.offset_json import parse_assignment


@dataclass(frozen=True, slots=True)
class Subscription:
    """Exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    assigned: tuple[TopicPartition, ...] = ()
    pattern: str | None = None

    @property
    def named_topics(self) -> tuple[str, ...]:
        """The topics that the user named; none with a pattern."""
        return self.topics or tuple(dict.fromkeys(topic_partition.topic for topic_partition in self.assigned))

    def takes(self, topic: TopicMetadata) -> bool:
        if self.pattern is not None:
            return not topic.is_internal and re.search(self.pattern, topic.name) is not None
        return topic.name in self.named_topics

    def partitions_of(self, topics: Iterable[TopicMetadata]) -> list[TopicPartition]:
        """The partitions of these topics that are read, sorted.

        An assigned partition that does not exist is left out, as with the Kafka connector.
        """
        wanted = set(self.assigned)
        found = [
            topic_partition
            for topic in topics
            if self.takes(topic)
            for topic_partition in topic.topic_partitions()
        ]
        return sorted(topic_partition for topic_partition in found if not wanted or topic_partition in wanted)


def subscription_of(options: Options) -> Subscription:
    """The one strategy that the options name; ConfigError for none, several, or an empty one."""
    given = [(name, text) for name in STRATEGIES if (text := options.text(name)) is not None]
    if len(given) != 1:
        raise _not_one([name for name, _ in given])
    name, text = given[0]
    if name == ASSIGN:
        return _assignment(text)
    return _topics(text) if name == SUBSCRIBE else _pattern(text)


def _not_one(given: list[str]) -> ConfigError:
    """In the Kafka connector's key words, which people search for."""
    choices = ", ".join(STRATEGIES)
    if given:
        return ConfigError(
            f"only one of {choices} may be set; found {' and '.join(given)}: leave one of them"
        )
    return ConfigError(
        f"one of the following options must be specified for a read: {choices}; found none (option topic is "
        "for writes)"
    )


def _assignment(text: str) -> Subscription:
    topic_partitions = parse_assignment(ASSIGN, text) if text.strip() else []
    if not topic_partitions:
        raise ConfigError(f'option assign={text!r} names no partitions; expected e.g. {{"topicA":[0,1]}}')
    return Subscription(assigned=tuple(topic_partitions))


def _topics(text: str) -> Subscription:
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not topics:
        raise ConfigError(f"option subscribe={text!r} names no topics; expected e.g. topicA,topicB")
    for name in topics:
        problem = topic_name_problem(name)
        if problem:
            raise ConfigError(f"option subscribe={text!r}: {problem}")
    return Subscription(topics=topics)


def _pattern(text: str) -> Subscription:
    pattern = text.strip()
    if not pattern:
        raise ConfigError("option subscribePattern is empty; give a regular expression such as events-.*")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"option subscribePattern={text!r} is no regular expression: {error}") from None
    return Subscription(pattern=pattern)
