"""Reading the cluster from ZooKeeper."""

from functools import partial

import pytest

from sparklog.controller.snapshot import has_withdrawn, read_brokers, read_snapshot
from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.incarnation import DirectoryIdentity, mark_suspect
from sparklog.model.cluster_facts import Broker, plaintext
from sparklog.model.ids import BrokerId, ControllerEpoch
from sparklog.zookeeper.broker_registration import register_broker, withdraw_suspect

pytestmark = pytest.mark.integration


def register(zookeeper, broker):
    address = Broker(BrokerId(broker), plaintext("host", 9000 + broker))
    identity = DirectoryIdentity(f"directory-{broker}")
    return register_broker(zookeeper, address, [identity], boot_id="boot", host_id="host")


def test_an_empty_corner_of_zookeeper_is_an_empty_cluster(zookeeper):
    snapshot = read_snapshot(zookeeper, ControllerEpoch(1), 0)
    assert (snapshot.brokers, snapshot.topics, snapshot.deletions) == ({}, (), frozenset())


def test_brokers_come_with_their_epoch_and_incarnation(zookeeper):
    register(zookeeper, 1)
    epoch = register(zookeeper, 1)
    live = read_brokers(zookeeper)[BrokerId(1)]
    assert (live.broker.epoch, live.incarnation.broker_epoch, live.incarnation.number) == (epoch, epoch, 1)


def test_a_broker_whose_directory_was_marked_suspect_is_still_the_same(zookeeper):
    epoch = register(zookeeper, 1)
    stored = read_brokers(zookeeper)[BrokerId(1)].incarnation
    data = znodes.encode_incarnation(mark_suspect(stored, "directory-1"))
    zookeeper.set(znodes.incarnation_path(BrokerId(1)), data, stored.number)
    live = read_brokers(zookeeper)[BrokerId(1)]
    assert (live.broker.epoch, live.incarnation.number) == (epoch, 1)


class Interrupted:
    """A ZooKeeper in which something happens between the two reads of a broker."""

    def __init__(self, zookeeper, event):
        self._zookeeper, self._event, self._reads = zookeeper, event, 0

    def children(self, path):
        return self._zookeeper.children(path)

    def get(self, path):
        self._reads += 1
        if self._reads == 2:
            self._event()
        return self._zookeeper.get(path)


@pytest.mark.bug(
    "B82", "away", "The controller takes a broker that has withdrawn for registered, with its next record."
)
def test_a_broker_that_withdraws_between_two_reads_is_not_registered_with_its_next_record(zookeeper):
    """Seed 4028: the controller took it for live, with a record that its partitions did not count yet."""
    epoch = register(zookeeper, 1)
    withdraw = partial(withdraw_suspect, zookeeper, BrokerId(1), epoch, "directory-1")
    assert read_brokers(Interrupted(zookeeper, withdraw)) == {}


def test_a_broker_that_withdrew_is_told_from_one_whose_session_expired(zookeeper):
    epoch = register(zookeeper, 1)
    live = read_brokers(zookeeper)[BrokerId(1)]
    zookeeper.delete(znodes.broker_path(BrokerId(1)))
    assert not has_withdrawn(zookeeper, live)
    withdraw_suspect(zookeeper, BrokerId(1), epoch, "directory-1")
    assert has_withdrawn(zookeeper, live)
    register(zookeeper, 1)
    assert not has_withdrawn(zookeeper, live), "the record is that of another incarnation"


def test_a_broker_that_registers_again_between_two_reads_is_read_again(zookeeper):
    register(zookeeper, 1)
    interrupted = Interrupted(zookeeper, partial(register, zookeeper, 1))
    assert read_brokers(interrupted) == read_brokers(zookeeper) != {}


def test_a_registration_that_other_software_made_is_ignored_and_named(zookeeper, caplog):
    register(zookeeper, 1)
    for broker in (1, 2):
        path = znodes.broker_path(BrokerId(broker))
        if zookeeper.exists(path) is not None:
            zookeeper.delete(path)
        zookeeper.create(
            path, znodes.encode_broker(Broker(BrokerId(broker), plaintext("h", 1))), ephemeral=True
        )
    register(zookeeper, 3)
    assert list(read_brokers(zookeeper)) == [3]
    assert "broker 1 was registered by other software" in caplog.text
    assert "broker 2 was registered by other software" in caplog.text


def test_quotas_come_with_every_node_above_them(zookeeper):
    held = {
        "/config/users/alice": b"",
        "/config/users/alice/clients": b"",
        "/config/users/alice/clients/home": znodes.encode_configs({"producer_byte_rate": "5"}),
        "/config/clients/<default>": znodes.encode_configs({"consumer_byte_rate": "6"}),
        "/config/ips/10.0.0.1": znodes.encode_configs({"connection_creation_rate": "7"}),
    }
    for path in ("/config/users", "/config/clients", "/config/ips"):
        zookeeper.ensure_path(path)
    for path, data in held.items():
        zookeeper.create(path, data)
    quotas = read_snapshot(zookeeper, ControllerEpoch(1), 0).quotas
    assert {node.version for node in quotas.values()} == {0}
    assert {path: node.configs for path, node in quotas.items()} == {
        "/config/users/alice": {},
        "/config/users/alice/clients": {},
        "/config/users/alice/clients/home": {"producer_byte_rate": "5"},
        "/config/clients/<default>": {"consumer_byte_rate": "6"},
        "/config/ips/10.0.0.1": {"connection_creation_rate": "7"},
    }
