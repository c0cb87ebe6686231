"""Who fetches for which partition, also when a topic was made again under its name."""

from types import SimpleNamespace

import pytest

from sparklog.broker.following.follow_table import FollowTable
from sparklog.model.ids import TopicPartition


class Runner:
    """Notes for whom its fetcher would fetch."""

    def __init__(self) -> None:
        self.fetcher, self.followed = self, []

    def add(self, partition) -> None:
        self.followed.append(partition)

    def remove(self, partition) -> None:
        self.followed.remove(partition)


def quakes():
    return SimpleNamespace(topic_partition=TopicPartition("quakes", 0))


@pytest.fixture
def table():
    return FollowTable()


def test_who_follows_another_leader_is_fetched_for_by_one_only(table) -> None:
    partition, before, now = quakes(), Runner(), Runner()
    table.follow(partition, before)
    table.follow(partition, now)
    assert (before.followed, now.followed) == ([], [partition])
    assert table.runner_of(partition) is now


def test_a_partition_made_anew_takes_the_place_of_the_one_that_had_its_name(table) -> None:
    earlier, later, runner = quakes(), quakes(), Runner()
    table.follow(earlier, runner)
    table.follow(later, runner)
    assert runner.followed == [later]
    assert table.runner_of(earlier) is None


def test_what_is_said_late_of_the_earlier_one_is_nothing_to_the_later(table) -> None:
    earlier, later, runner = quakes(), quakes(), Runner()
    table.follow(earlier, runner)
    table.follow(later, runner)
    table.stop(earlier)
    assert runner.followed == [later]
    table.stop(later)
    table.stop(later)
    assert runner.followed == []
    assert table.runner_of(later) is None
