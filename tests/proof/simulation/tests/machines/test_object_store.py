"""A simulated store keeps what the probe of stores demands, and breaks what nobody promises."""

import random

import pytest

from simulation.machines.blocking_work import WorkThreads
from simulation.machines.object_store import ObjectStore, StoreLink
from simulation.schedule import Escaped, Process, Schedule
from sparklog.remote.store import Failure, RemoteStoreError

NAME = "topic=a/partition=0/x.rest"
SECOND_US = 1_000_000


class World:
    """A store, and one broker's way to it."""

    def __init__(self):
        self.schedule = Schedule()
        self.store = ObjectStore(self.schedule, (2.0, 10.0))
        self.threads = WorkThreads(Process(self.schedule, "broker-1#1"))
        self.link = StoreLink(self.store, self.threads, random.Random(1))

    def ask(self, call):
        """What a call returned, or of which kind its failure was, and how many milliseconds that took."""
        ends = []

        def work():
            began_us = self.schedule.now_us
            try:
                result = call()
            except RemoteStoreError as error:
                result = error.failure
            ends.append((result, (self.schedule.now_us - began_us) / 1_000))

        self.threads.submit(work)
        self.schedule.run_until(self.schedule.now_us + 2 * SECOND_US)
        return ends[0]

    def put(self, data=(b"abc", b"def"), name=NAME):
        return self.ask(lambda: self.link.put(name, data))[0]


@pytest.fixture
def world():
    made = World()
    yield made
    made.threads.end()


def test_an_object_is_read_as_it_was_written_and_a_call_takes_its_time(world):
    assert world.put() == 6
    found, took_ms = world.ask(lambda: world.link.read(NAME, 2, 3))
    assert found == b"cde"
    assert 2 <= took_ms <= 10


def test_a_taken_name_is_refused_and_keeps_its_object(world):
    world.put()
    assert world.put([b"other"]) is Failure.EXISTS
    assert world.store.objects == {NAME: b"abcdef"}


def test_a_range_beyond_the_end_and_an_object_that_is_not_there_are_failures(world):
    world.put()
    assert world.ask(lambda: world.link.read(NAME, 4, 3))[0] is Failure.SHORT
    assert world.ask(lambda: world.link.read("topic=a/y", 0, 1))[0] is Failure.MISSING


def test_pieces_that_fail_leave_no_object(world):
    def pieces():
        yield b"abc"
        raise ValueError("no more")

    with pytest.raises(Escaped, match="no more"):
        world.put(pieces())
    assert world.store.objects == {}


def test_a_listing_has_one_folder_and_may_be_an_old_one(world):
    world.put()
    world.put(name="topic=b/z")
    assert world.ask(lambda: world.link.names("topic=a/partition=0"))[0] == [NAME]
    now_ms = world.schedule.now_ms
    assert world.store.names("topic=a/partition=0", now_ms) == []
    world.ask(lambda: world.link.delete(NAME))
    assert world.store.names("topic=a/partition=0") == []
    assert world.store.names("topic=a/partition=0", world.schedule.now_ms - now_ms) == [NAME]


def test_under_trouble_listings_are_of_any_moment_up_to_its_age(world):
    world.put()
    world.store.trouble.stale_ms = 1_000_000.0
    found = {tuple(world.ask(lambda: world.link.names("topic=a/partition=0"))[0]) for _ in range(20)}
    assert () in found


def test_a_store_that_is_away_is_waited_for_and_nothing_happens_there(world):
    world.store.trouble.away = 1
    failure, took_ms = world.ask(lambda: world.link.put(NAME, [b"abc"]))
    assert (failure, world.store.objects) == (Failure.AWAY, {})
    assert took_ms > 300


def test_a_failed_upload_leaves_nothing_or_the_whole_and_that_now_or_later(world):
    """All four fates come up: refused, torn, done without an answer, done later."""
    world.store.trouble.failing = 1.0
    there = set()
    for number in range(60):
        name = f"topic=a/{number}"
        at_once = world.store.objects.get(name)
        ends = []

        def work(name=name, ends=ends):
            try:
                world.link.put(name, [b"abc", b"def"])
            except RemoteStoreError as error:
                ends.append((error.failure, world.store.objects.get(name)))

        world.threads.submit(work)
        world.schedule.run_until(world.schedule.now_us + 2 * SECOND_US)
        assert at_once is None
        assert ends[0][0] is Failure.AWAY
        there.add((ends[0][1], world.store.objects.get(name)))
    assert there == {(None, None), (b"abcdef", b"abcdef"), (None, b"abcdef")}
