"""Settings of users, clients and addresses are read whole, and again when a notification names them."""

import pytest

from sparklog.core.controller.state.entity_changes import notify_of
from sparklog.core.controller.state.znodes import CONFIG_CHANGES, encode_configs
from sparklog.model.loops import go_on
from sparklog.model.zookeeper import Create, ZooKeeperError
from sparklog.testing.memory_zookeeper import MemoryZooKeeperServer
from sparklog.zookeeper.entity_configs import EntityConfigs
from sparklog.zookeeper.notified_nodes import LOOK_AGAIN_MS
from tests.waiting import until

ALICE = "/config/users/alice"
APP = "/config/users/alice/clients/app"


class Kept:
    """What a reader was given."""

    def __init__(self):
        self.nodes = {}
        self.reads = 0

    def replace(self, nodes):
        self.nodes = dict(nodes)
        self.reads += 1

    def put(self, path, configs):
        self.nodes[path] = configs


class World:
    def __init__(self):
        self.server = MemoryZooKeeperServer()
        self.tool = self.server.client()
        for path in (ALICE, "/config/clients", "/config/ips", CONFIG_CHANGES):
            self.tool.ensure_path(path)
        self.client = self.server.client()
        self.kept = Kept()
        self.configs = EntityConfigs(self.client, [self.kept])

    def write(self, path, notify=True, **configs):
        self.tool.ensure_path(path)
        self.tool.set(path, encode_configs(configs))
        if notify:
            self.tool.multi([notify_of(path)])

    def begin(self):
        """The loop, which waits for the first change."""
        self.configs.read_all()
        loop = self.configs.loop()
        self.question = go_on(loop)
        return loop

    def go_on(self, loop):
        """Let the loop look once more, after its signal."""
        until(lambda: self.question.signal.is_given)
        self.question.signal.take()
        self.question = go_on(loop, True)


@pytest.fixture
def world():
    world = World()
    yield world
    world.client.close()
    world.tool.close()


def test_all_nodes_are_read_at_first(world):
    world.write(ALICE, notify=False, producer_byte_rate="1")
    world.write(APP, notify=False, producer_byte_rate="2")
    world.write("/config/ips/<default>", notify=False, connection_creation_rate="3")
    world.configs.read_all()
    assert world.kept.nodes == {
        ALICE: {"producer_byte_rate": "1"},
        f"{ALICE}/clients": {},
        APP: {"producer_byte_rate": "2"},
        "/config/ips/<default>": {"connection_creation_rate": "3"},
    }


def test_a_node_is_read_again_when_a_notification_names_it(world):
    loop = world.begin()
    world.write(ALICE, producer_byte_rate="1")
    world.go_on(loop)
    assert world.kept.nodes[ALICE] == {"producer_byte_rate": "1"}
    world.tool.delete(ALICE)
    world.tool.multi([notify_of(ALICE)])
    world.go_on(loop)
    assert world.kept.nodes[ALICE] == {}
    assert world.kept.reads == 1


def test_what_changed_between_the_first_reading_and_the_loop_is_not_missed(world):
    world.configs.read_all()
    world.write(ALICE, producer_byte_rate="1")
    go_on(world.configs.loop())
    assert world.kept.nodes[ALICE] == {"producer_byte_rate": "1"}


def test_a_node_that_cannot_be_read_has_no_settings(world):
    loop = world.begin()
    world.tool.set(ALICE, b"{no json")
    world.tool.multi([notify_of(ALICE)])
    world.go_on(loop)
    assert (world.kept.nodes[ALICE], world.kept.reads) == ({}, 1)


def test_a_notification_that_cannot_be_read_has_everything_read_again(world, caplog):
    loop = world.begin()
    world.write(ALICE, notify=False, producer_byte_rate="1")
    world.tool.multi([Create(f"{CONFIG_CHANGES}/config_change_", b"?", sequential=True)])
    world.go_on(loop)
    assert world.kept.nodes[ALICE] == {"producer_byte_rate": "1"}
    assert "reading all users and quotas" in caplog.text


def test_after_a_reconnect_everything_is_read_again(world):
    loop = world.begin()
    world.client.lose_connection()
    world.write(ALICE, notify=False, producer_byte_rate="1")
    world.go_on(loop)
    assert world.question.timeout_ms == LOOK_AGAIN_MS
    assert world.kept.reads == 1
    world.client.restore_connection()
    world.go_on(loop)
    assert world.kept.nodes[ALICE] == {"producer_byte_rate": "1"}
    assert world.kept.reads == 2


def test_an_owner_does_not_listen_on_what_it_could_not_read(world):
    world.client.lose_connection()
    with pytest.raises(ZooKeeperError):
        world.configs.read_all()
