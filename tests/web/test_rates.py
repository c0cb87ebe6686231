"""Records a second, by how far the ends of partitions went between two looks."""

from sparklog.model.ids import TopicPartition
from sparklog.web.rates import LOOKS_KEPT, WriteRates

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_a_rate_needs_two_looks() -> None:
    rates = WriteRates()
    rates.add(1_000, {A0: 5})
    assert (rates.of_topic("a"), rates.history()) == (None, [])
    rates.add(11_000, {A0: 105})
    assert (rates.of_topic("a"), rates.history()) == (10.0, [(11_000, 10.0)])


def test_partitions_of_a_topic_and_topics_add_up() -> None:
    rates = WriteRates()
    rates.add(0, {A0: 0, A1: 0, B0: 0})
    rates.add(2_000, {A0: 2, A1: 4, B0: 10})
    assert (rates.of_topic("a"), rates.of_topic("b"), rates.history()) == (3.0, 5.0, [(2_000, 8.0)])


def test_an_end_that_is_not_known_or_went_back_counts_nothing() -> None:
    rates = WriteRates()
    rates.add(0, {A0: 100, A1: -1, B0: 50})
    rates.add(1_000, {A0: -1, A1: 70, B0: 40})
    assert (rates.of_topic("a"), rates.of_topic("b")) == (0.0, 0.0)
    rates.add(2_000, {A0: 110, A1: 75, B0: 45})
    assert (rates.of_topic("a"), rates.of_topic("b")) == (5.0, 5.0)


def test_an_hour_is_kept_and_a_clock_that_stands_is_no_time() -> None:
    rates = WriteRates()
    for number in range(LOOKS_KEPT + 3):
        rates.add(number * 10_000, {A0: number})
    assert len(rates.history()) == LOOKS_KEPT
    rates.add((LOOKS_KEPT + 2) * 10_000, {A0: 10_000})
    assert len(rates.history()) == LOOKS_KEPT
