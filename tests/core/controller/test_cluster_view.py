"""What other threads see of the cluster."""

from sparklog.core.controller.cluster_view import view_of
from sparklog.core.controller.commands.broker_commands import ControlledShutdown
from sparklog.core.controller.commands.topic_commands import DeleteTopics, DoomedTopic
from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind
from sparklog.core.controller.events.event_log import EventLog
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch


def view(world, log=None):
    return view_of(world.machine.image, log or EventLog(ControllerEpoch(1)))


def counts(world):
    seen = view(world)
    return {broker: (one.leaders, one.replicas, one.in_sync) for broker, one in seen.brokers.items()}


def test_partitions_are_counted_where_they_are(world):
    world.create("t", ((1, 2), (2, 3), (2, 1)))
    assert counts(world) == {1: (1, 2, 2), 2: (2, 3, 3), 3: (0, 1, 1)}
    world.crash(2)
    assert counts(world) == {1: (2, 2, 2), 3: (1, 1, 1)}
    seen = view(world)
    assert (seen.topics, seen.partitions, seen.under_replicated, seen.leaderless) == (1, 3, 3, 0)
    assert seen.led_by_another == 2


def test_partitions_that_a_dead_broker_alone_could_lead_have_no_leader(world):
    world.create("t", ((3,), (1,)))
    world.crash(3)
    assert (view(world).leaderless, view(world).partitions) == (1, 2)


def test_a_topic_that_is_being_deleted_is_counted_no_more(world):
    world.create("t", ((1, 2),))
    world.submit(DeleteTopics((DoomedTopic("t"),), 10_000))
    seen = view(world)
    assert (seen.topics, seen.partitions, seen.under_replicated) == (0, 0, 0)
    assert counts(world) == {1: (0, 0, 0), 2: (0, 0, 0), 3: (0, 0, 0)}


def test_a_broker_that_is_stopping_is_seen_so(world):
    world.submit(ControlledShutdown(BrokerId(2), BrokerEpoch(world.epoch(2))))
    assert [one.is_stopping for one in view(world).brokers.values()] == [False, True, False]


def test_a_view_is_kept_until_something_that_it_shows_has_changed(world):
    log = EventLog(ControllerEpoch(1))
    first = view(world, log)
    assert first.is_of(world.machine.image, log)
    log.add(ClusterEvent(EventKind.topic, "t", "words"), 0)
    assert not first.is_of(world.machine.image, log)
    second = view(world, log)
    world.create("another-of-views")
    assert not second.is_of(world.machine.image, log)
