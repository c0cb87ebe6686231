"""A broker's traffic by topic: a bounded number of series, each of which only rises, and none of it lost."""

import threading

import pytest

from sparklog.broker.partition import topic_traffic
from sparklog.broker.partition.topic_traffic import OTHER_TOPICS, TopicTraffic, Traffic


@pytest.fixture
def traffic(monkeypatch):
    """At most two topics have series of their own."""
    monkeypatch.setattr(topic_traffic, "TOPICS_MAX", 2)
    return TopicTraffic(threading.Lock)


def fetched(traffic):
    return {topic: one.fetched_bytes for topic, one in traffic.read().items()}


def test_what_partitions_of_a_topic_count_is_summed():
    traffic = TopicTraffic(threading.Lock)
    first, second = traffic.of("quakes"), traffic.of("quakes")
    first.count_produced(100, 3)
    second.count_produced(20, 1)
    second.count_fetched(70, 2)
    assert traffic.read() == {"quakes": Traffic(120, 4, 70, 2)}
    traffic.of("trees").count_produced(1, 1)
    assert traffic.total() == Traffic(120, 4, 70, 2), "nobody holds the counts of trees"


def test_the_busiest_since_the_last_scrape_have_series_and_none_falls(traffic):
    topics = {name: traffic.of(name) for name in "abc"}
    for name, size_bytes in (("a", 10), ("b", 20), ("c", 5)):
        topics[name].count_fetched(size_bytes, 1)
    assert fetched(traffic) == {"a": 10, "b": 20, OTHER_TOPICS: 5}
    topics["c"].count_fetched(100, 1)
    topics["a"].count_fetched(1, 1)
    assert fetched(traffic) == {"a": 11, "c": 100, OTHER_TOPICS: 5}, "the past of c stays where it was"
    topics["a"].count_fetched(1, 1)
    topics["b"].count_fetched(50, 1)
    topics["c"].count_fetched(60, 1)
    assert fetched(traffic) == {"b": 70, "c": 160, OTHER_TOPICS: 6}, "the series of b goes on"


def test_without_news_the_same_topics_keep_their_series(traffic):
    topics = {name: traffic.of(name) for name in "abc"}
    topics["c"].count_fetched(2, 1)
    topics["b"].count_fetched(1, 1)
    assert fetched(traffic) == fetched(traffic) == {"b": 1, "c": 2}


def test_counts_end_with_the_last_partition_of_their_topic():
    traffic = TopicTraffic(threading.Lock)
    counts = traffic.of("gone")
    counts.count_fetched(9, 1)
    assert fetched(traffic) == {"gone": 9}
    del counts
    assert fetched(traffic) == {}
