"""Records a second, by how far the ends of partitions went between two looks."""

from sparklog.model.ids import TopicPartition
from sparklog.web.rates import WriteRates

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_a_rate_needs_two_looks() -> None:
    rates = WriteRates()
    rates.add(1_000, {A0: 5})
    assert rates.of_topic("a") is None
    rates.add(11_000, {A0: 105})
    assert rates.of_topic("a") == 10.0
    rates.add(11_000, {A0: 900})
    assert rates.of_topic("a") == 10.0, "a clock that stands is no time"


def test_partitions_of_a_topic_and_topics_add_up() -> None:
    rates = WriteRates()
    rates.add(0, {A0: 0, A1: 0, B0: 0})
    rates.add(2_000, {A0: 2, A1: 4, B0: 10})
    assert (rates.of_topic("a"), rates.of_topic("b")) == (3.0, 5.0)


def test_an_end_that_is_not_known_or_went_back_counts_nothing() -> None:
    rates = WriteRates()
    rates.add(0, {A0: 100, A1: -1, B0: 50})
    rates.add(1_000, {A0: -1, A1: 70, B0: 40})
    assert (rates.of_topic("a"), rates.of_topic("b")) == (0.0, 0.0)
    rates.add(2_000, {A0: 110, A1: 75, B0: 45})
    assert (rates.of_topic("a"), rates.of_topic("b")) == (5.0, 5.0)
