"""Threads that fetch, and the table of who follows whom."""

from sparklog.broker.fetcher_threads import FetcherThreads
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


class Named:
    topic_partition = TopicPartition("quakes", 0)


def test_a_late_stop_of_a_deleted_partition_does_not_stop_its_successor_of_the_same_name() -> None:
    fetchers = {}
    threads = FetcherThreads(lambda leader: fetchers.setdefault(leader, QuietFetcher(leader)), NoPeers())
    deleted, made_anew = Named(), Named()
    threads.start(deleted, BrokerId(1))
    threads.start(made_anew, BrokerId(2))
    threads.stop(deleted)
    assert (fetchers[1].followed, fetchers[2].followed) == ([], [made_anew])
    threads.stop(made_anew)
    assert fetchers[2].followed == []
    threads.close()
