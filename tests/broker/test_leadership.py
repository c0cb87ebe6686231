"""Listeners are notified of the leader epochs of this broker's replicas."""

import logging

import pytest

from sparklog.model.ids import TopicPartition

TP = TopicPartition("quakes", 0)


class Listener:
    def __init__(self) -> None:
        self.heard = []

    def began_leading(self, topic_partition, leader_epoch) -> None:
        self.heard.append(("began", topic_partition, leader_epoch))

    def ceased_leading(self, topic_partition, leader_epoch) -> None:
        self.heard.append(("ceased", topic_partition, leader_epoch))


class FailingListener:
    def began_leading(self, topic_partition, leader_epoch) -> None:
        raise KeyError("a bug")

    ceased_leading = began_leading


@pytest.fixture
def listener(members):
    listener = Listener()
    members[1].parts.leadership.add_listener(listener)
    return listener


def test_a_listener_hears_when_a_replica_begins_to_lead_and_when_it_ceases(members, listener):
    members[1].become(1, 3)
    members[1].become(2, 4)
    members[1].become(1, 7)
    members[1].parts.roles.stop_serving("its session expired")
    assert listener.heard == [("began", TP, 3), ("ceased", TP, 3), ("began", TP, 7), ("ceased", TP, 7)]


def test_a_listener_hears_that_a_replica_that_is_deleted_ceases_to_lead(members, listener):
    members[1].become(1, 3)
    members[1].parts.log_dirs.is_online = lambda topic_partition: True
    members[1].parts.roles.stop_replica(TP, 4, delete=True)
    assert listener.heard == [("began", TP, 3), ("ceased", TP, 3)]


def test_a_listener_that_fails_harms_no_other_and_no_other_effect(members, caplog):
    leadership, listener = members[1].parts.leadership, Listener()
    leadership.add_listener(FailingListener())
    leadership.add_listener(listener)
    with caplog.at_level(logging.CRITICAL, logger="sparklog"):
        members[1].become(1, 3)
        members[1].become(2, 4)
    assert listener.heard == [("began", TP, 3), ("ceased", TP, 3)]
    assert members[1].fetcher is not None, "it follows broker 2"
