"""What is asked for a cut, in which order, and when the questions begin again."""

import pytest

from sparklog.client.transactions.cut import Answer, Cut, decode, encode
from sparklog.client.transactions.cut_rounds import (
    ATTEMPTS_MAX,
    Agreed,
    HighWatermarks,
    Visibilities,
    agreed,
    made,
)
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
SINCE = {A: 3, B: 4}
ANSWERS = {A: Answer(5, 5, frozenset({7})), B: Answer(6, 6, frozenset())}
CUT = Cut({A: (5, 5), B: (6, 6)}, frozenset({7}))
OTHER_CUT = Cut({A: (1, 1), B: (1, 1)}, frozenset())


def end_of(conversation, answer):
    with pytest.raises(StopIteration) as end:
        conversation.send(answer)
    return end.value.value


def test_the_second_round_follows_when_all_have_answered_the_first():
    conversation = made([A, B])
    assert next(conversation) == HighWatermarks((A, B))
    assert conversation.send(SINCE) == Visibilities(SINCE, is_last=False)
    assert end_of(conversation, ANSWERS) == CUT


def test_a_second_round_that_comes_too_late_has_both_asked_again_a_few_times():
    conversation = made([A, B])
    question = next(conversation)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        assert question == HighWatermarks((A, B))
        assert conversation.send(SINCE) == Visibilities(SINCE, is_last=attempt == ATTEMPTS_MAX)
        if attempt < ATTEMPTS_MAX:
            question = conversation.send(None)
    assert end_of(conversation, ANSWERS) == CUT


def test_a_cut_that_was_agreed_upon_is_not_made_again():
    conversation = agreed(lambda: pytest.fail("a cut was there"))
    assert next(conversation) == Agreed()
    assert end_of(conversation, encode(CUT)) == CUT


def test_of_two_cuts_that_were_made_at_a_time_the_one_that_was_put_first_counts():
    conversation = agreed(lambda: [A, B])
    next(conversation)
    assert conversation.send(None) == HighWatermarks((A, B))
    conversation.send(SINCE)
    assert conversation.send(ANSWERS) == Agreed(encode(CUT))
    assert end_of(conversation, encode(OTHER_CUT)) == OTHER_CUT


def put_of_a_cut_of(partitions_count):
    """What is put for a cut of so many partitions."""
    wanted = [TopicPartition("t", number) for number in range(partitions_count)]
    conversation = agreed(lambda: wanted)
    next(conversation)
    conversation.send(None)
    conversation.send(dict.fromkeys(wanted, 1))
    return conversation.send({one: Answer(1_000_000, 1_000_000, frozenset()) for one in wanted})


def test_a_cut_of_as_many_partitions_as_the_cluster_keeps_is_put():
    assert len(decode(put_of_a_cut_of(20_000).value).ends) == 20_000


def test_a_cut_of_more_partitions_than_the_cluster_keeps_is_refused_before_it_is_sent():
    with pytest.raises(SparklogError, match=r"over 25,000 partitions takes 588,930 bytes.*at most 524,288"):
        put_of_a_cut_of(25_000)
