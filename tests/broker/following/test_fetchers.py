"""Fetchers as loops that wait for their leaders, and the table of who follows whom."""

import threading

from sparklog.broker.following.fetchers import Fetchers
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.loops import Await, Pause, go_on


class QuietFetcher:
    """Notes for whom it would fetch."""

    def __init__(self, leader) -> None:
        self.leader, self.followed, self.backed_off = leader, [], []

    def add(self, partition) -> None:
        self.followed.append(partition)

    def remove(self, partition) -> None:
        self.followed.remove(partition)

    def back_off(self, partition) -> None:
        self.backed_off.append(partition)

    def round(self):
        return 60_000
        yield


class PollingFetcher(QuietFetcher):
    """Each round is a long poll; ``Pause`` stands for the call."""

    def round(self):
        yield Pause(500)
        return 20


class Numbered:
    def __init__(self, number) -> None:
        self.topic_partition = TopicPartition("many", number)


class Named:
    topic_partition = TopicPartition("quakes", 0)


class Bench:
    """Fetchers over loops that a test drives, and what they hung up on."""

    def __init__(self, kind=QuietFetcher, lanes=1) -> None:
        self.loops, self.made, self.hung_up = {}, {}, []
        self.fetchers = Fetchers(
            lambda leader, lane: self.made.setdefault((leader, lane), kind(leader)),
            self,
            lambda leader, lane: self.hung_up.append((leader, lane)),
            lanes=lanes,
            guard=threading.Lock(),
        )

    def start(self, name, begin) -> None:
        self.loops[name] = begin()


def test_a_partition_that_begins_to_follow_ends_a_long_poll_and_the_pause_after_it() -> None:
    bench = Bench(PollingFetcher)
    bench.fetchers.start(Named(), BrokerId(1))
    (loop,) = bench.loops.values()
    assert go_on(loop) == Pause(500)
    bench.fetchers.start(Numbered(1), BrokerId(1))
    assert bench.hung_up == [(1, 0)]
    pause = go_on(loop)
    assert pause.timeout_ms == 20
    assert pause.signal.is_given


def test_a_partition_that_begins_to_follow_ends_a_pause_and_no_connection() -> None:
    bench = Bench()
    bench.fetchers.start(Named(), BrokerId(1))
    (loop,) = bench.loops.values()
    pause = go_on(loop)
    assert pause == Await(pause.signal, 60_000)
    bench.fetchers.start(Numbered(1), BrokerId(1))
    assert pause.signal.is_given
    assert bench.hung_up == []


def test_many_partitions_that_begin_to_follow_together_end_a_long_poll_once() -> None:
    bench = Bench(PollingFetcher)
    bench.fetchers.start(Named(), BrokerId(1))
    (loop,) = bench.loops.values()
    go_on(loop)
    with bench.fetchers.together():
        for number in range(100):
            bench.fetchers.start(Numbered(number), BrokerId(1))
        assert bench.hung_up == []
    assert bench.hung_up == [(1, 0)]
    assert len(bench.made[1, 0].followed) == 101


def test_a_late_stop_of_a_deleted_partition_does_not_stop_its_successor_of_the_same_name() -> None:
    bench = Bench()
    deleted, made_anew = Named(), Named()
    bench.fetchers.start(deleted, BrokerId(1))
    bench.fetchers.start(made_anew, BrokerId(2))
    bench.fetchers.stop(deleted)
    assert (bench.made[1, 0].followed, bench.made[2, 0].followed) == ([], [made_anew])
    bench.fetchers.stop(made_anew)
    bench.fetchers.stop(made_anew)
    assert bench.made[2, 0].followed == []


def test_a_partition_that_follows_another_leader_is_fetched_for_by_that_fetcher_alone() -> None:
    bench, partition = Bench(), Named()
    for leader in (1, 2):
        bench.fetchers.start(partition, BrokerId(leader))
    assert (bench.made[1, 0].followed, bench.made[2, 0].followed) == ([], [partition])
    bench.fetchers.back_off(partition, ErrorCode.fenced_leader_epoch)
    assert (bench.made[1, 0].backed_off, bench.made[2, 0].backed_off) == ([], [partition])


def test_a_message_about_a_replaced_partition_or_one_that_stopped_reaches_no_fetcher() -> None:
    bench = Bench()
    deleted, made_anew = Named(), Named()
    for partition in (deleted, made_anew):
        bench.fetchers.start(partition, BrokerId(1))
    assert bench.made[1, 0].followed == [made_anew]
    bench.fetchers.back_off(deleted, ErrorCode.fenced_leader_epoch)
    bench.fetchers.stop(made_anew)
    bench.fetchers.back_off(made_anew, ErrorCode.fenced_leader_epoch)
    assert bench.made[1, 0].backed_off == []


def test_the_partitions_of_a_leader_are_spread_over_its_fetchers_each_with_its_own_lane() -> None:
    bench = Bench(lanes=3)
    partitions = [Numbered(number) for number in range(9)]
    followed = {}
    for leader in (1, 2):
        for partition in partitions:
            bench.fetchers.start(partition, BrokerId(leader))
        followed[leader] = [list(bench.made[leader, lane].followed) for lane in range(3)]
    assert list(map(len, followed[1])) == [3, 3, 3]
    assert followed[1] == followed[2], "the same lane for ever"
