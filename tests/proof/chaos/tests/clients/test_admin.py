"""Administrators beside faults: what a cluster refuses is no finding, what was never asked of it is one."""

import random
import time
from collections import Counter

import pytest
from confluent_kafka import KafkaError, KafkaException

from chaos.access import Access
from chaos.clients import admin
from chaos.clients.admin import Administrators
from histories import Writer
from sparklog.testing import InProcessCluster


@pytest.fixture
def administrators(tmp_path):
    """Makes them, with no topic but ``plain``."""
    with Writer(tmp_path / "administrators.jsonl") as writer:

        def make(bootstrap="127.0.0.1:1"):
            return Administrators(
                Access(bootstrap),
                writer,
                random.Random(1),
                brokers=[1, 2, 3],
                topics={"plain": 2},
                moving="plain",
                shrinking="plain",
                every_s=(0.0, 0.01),
            )

        yield make


def work(administrators, monkeypatch, error):
    """Every operation ends in ``error``, until one was counted."""

    def fail():
        raise error

    for name in ("_create", "_delete", "_move", "_elect", "_delete_records"):
        monkeypatch.setattr(administrators, name, fail)
    administrators.start()
    deadline = time.monotonic() + 30
    while not (administrators.refused or administrators.mistakes):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    administrators.stop()


def test_what_a_library_cannot_do_is_told_and_not_counted_as_refused(administrators, monkeypatch):
    ours = administrators()
    work(ours, monkeypatch, SystemError("more argument specifiers than keyword list entries"))
    assert ours.refused == {}
    assert all("more argument specifiers" in what for what in ours.mistakes)


def test_what_a_cluster_under_faults_refuses_is_counted(administrators, monkeypatch):
    ours = administrators()
    work(ours, monkeypatch, KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT)))
    assert ours.mistakes == set()
    assert sum(ours.refused.values()) >= 1


class ProducerWithoutAnswers:
    """Answers as many flushes as it is told to; ``most`` is what was under way in one partition at most."""

    def __init__(self, answered):
        self._answered, self._under_way = answered, Counter()
        self.settings, self.sent, self.most = {}, 0, 0

    def __call__(self, settings):
        self.settings = settings
        return self

    def produce(self, topic, value, partition, on_delivery):
        self.sent += 1
        self._under_way[partition] += 1
        self.most = max(self.most, *self._under_way.values())

    def flush(self, timeout_s):
        if self._answered:
            self._answered -= 1
            self._under_way.clear()
        return self._under_way.total()


@pytest.mark.parametrize(("answered", "sent"), [(100, admin.SCRATCH_RECORDS), (2, 9)])
def test_a_new_topic_is_filled_with_one_record_under_way_in_each_partition(
    administrators, monkeypatch, answered, sent
):
    producer = ProducerWithoutAnswers(answered)
    monkeypatch.setattr(admin, "Producer", producer)
    administrators()._fill("scratch-1", 3)
    assert (producer.sent, producer.most) == (sent, 1)
    assert "message.timeout.ms" not in producer.settings


@pytest.mark.integration
def test_every_operation_is_one_that_brokers_carry_out(administrators):
    with InProcessCluster(brokers=3) as cluster:
        cluster.create_topic("plain", partitions=2, replication_factor=2)
        ours = administrators(cluster.bootstrap_servers)
        for operation in (ours._delete_records, ours._create, ours._delete, ours._elect, ours._move):
            operation()
