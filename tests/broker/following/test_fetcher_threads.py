"""Threads that fetch, and the table of who follows whom."""

import threading

from sparklog.broker.following.fetcher_threads import FetcherThreads
from sparklog.model.ids import BrokerId, TopicPartition


class QuietFetcher:
    """Notes for whom it would fetch."""

    def __init__(self, leader) -> None:
        self.leader, self.followed = leader, []

    def add(self, partition) -> None:
        self.followed.append(partition)

    def remove(self, partition) -> None:
        self.followed.remove(partition)

    def run_once(self) -> int:
        return 60_000


class NoPeers:
    def forget(self, broker_id) -> None:
        pass


class Numbered:
    def __init__(self, number) -> None:
        self.topic_partition = TopicPartition("many", number)


class Named:
    topic_partition = TopicPartition("quakes", 0)


class PollingFetcher(QuietFetcher):
    """Each round hangs until the connection is dropped, as a long poll does."""

    def __init__(self, leader, dropped) -> None:
        super().__init__(leader)
        self.dropped, self.rounds = dropped, threading.Semaphore(0)

    def run_once(self) -> int:
        self.rounds.release()
        self.dropped.acquire()
        return 0


class CountingPeers:
    def __init__(self) -> None:
        self.dropped, self.drops = threading.Semaphore(0), 0

    def forget(self, broker_id) -> None:
        self.drops += 1
        self.dropped.release()


def test_many_partitions_that_begin_to_follow_together_end_a_long_poll_once() -> None:
    peers, fetchers = CountingPeers(), []

    def new_fetcher(leader, _peers):
        fetchers.append(PollingFetcher(leader, peers.dropped))
        return fetchers[-1]

    threads = FetcherThreads(new_fetcher, [peers])
    threads.start(Named(), BrokerId(1))
    before = peers.drops  # its thread may have begun to poll at once
    for _ in range(before + 1):
        assert fetchers[0].rounds.acquire(timeout=10)
    with threads.together():
        for number in range(100):
            threads.start(Numbered(number), BrokerId(1))
        assert peers.drops == before
    assert peers.drops == before + 1
    assert len(fetchers[0].followed) == 101
    threads.close()


def test_a_late_stop_of_a_deleted_partition_does_not_stop_its_successor_of_the_same_name() -> None:
    fetchers = {}
    threads = FetcherThreads(lambda leader, _: fetchers.setdefault(leader, QuietFetcher(leader)), [NoPeers()])
    deleted, made_anew = Named(), Named()
    threads.start(deleted, BrokerId(1))
    threads.start(made_anew, BrokerId(2))
    threads.stop(deleted)
    assert (fetchers[1].followed, fetchers[2].followed) == ([], [made_anew])
    threads.stop(made_anew)
    assert fetchers[2].followed == []
    threads.close()


def test_partitions_of_a_leader_are_spread_over_fetchers_with_own_connections() -> None:
    lanes, fetchers = [NoPeers(), NoPeers(), NoPeers()], {}

    def new_fetcher(leader, peers):
        fetchers[leader, lanes.index(peers)] = fetcher = QuietFetcher(leader)
        return fetcher

    threads = FetcherThreads(new_fetcher, lanes)
    partitions = [Numbered(number) for number in range(9)]
    for partition in partitions:
        threads.start(partition, BrokerId(1))
    assert {key: len(fetcher.followed) for key, fetcher in fetchers.items()} == {
        (1, 0): 3,
        (1, 1): 3,
        (1, 2): 3,
    }
    before = {key: list(fetcher.followed) for key, fetcher in fetchers.items()}
    for partition in partitions:
        threads.start(partition, BrokerId(2))
    assert all(fetchers[2, lane].followed == before[1, lane] for lane in range(3)), "the same lane for ever"
    assert not any(fetchers[1, lane].followed for lane in range(3))
    threads.close()
