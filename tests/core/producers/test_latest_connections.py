"""A request over an older connection than a later one of its kind, producer and epoch is late."""

from sparklog.core.producers.latest_connections import LatestConnections


def test_a_request_over_an_older_connection_is_late():
    connections = LatestConnections()
    assert not connections.is_late("end 7", 0, 3)
    assert not connections.is_late("end 7", 0, 5)
    assert connections.is_late("end 7", 0, 3)
    assert connections.is_late("end 7", 0, 4), "a late request does not become the latest"
    assert not connections.is_late("end 7", 0, 5)


def test_kinds_and_producers_are_kept_apart():
    connections = LatestConnections()
    assert not connections.is_late("end 7", 0, 5)
    assert not connections.is_late("add 7", 0, 3)
    assert not connections.is_late("end 8", 0, 3)


def test_a_new_epoch_may_come_over_any_connection():
    connections = LatestConnections()
    assert not connections.is_late("end 7", 0, 5)
    assert not connections.is_late("end 7", 1, 3)
    assert connections.is_late("end 7", 1, 2)


def test_an_older_epoch_is_left_to_the_fence_and_forgets_nothing():
    connections = LatestConnections()
    assert not connections.is_late("end 7", 1, 5)
    assert not connections.is_late("end 7", 0, 3)
    assert connections.is_late("end 7", 1, 3)


def test_a_request_from_within_the_broker_is_never_late():
    connections = LatestConnections()
    assert not connections.is_late("end 7", 0, 5)
    assert not connections.is_late("end 7", 0, None)


def test_the_sender_that_was_not_heard_for_longest_is_forgotten():
    connections = LatestConnections(entries_max=2)
    for sender in ("a", "b", "a", "c"):
        assert not connections.is_late(sender, 0, 5)
    assert len(connections) == 2
    assert connections.is_late("a", 0, 4)
    assert not connections.is_late("b", 0, 4)
