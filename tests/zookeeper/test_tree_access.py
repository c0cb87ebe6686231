"""A tree in use is closed to others, and opened again; a cut loses nothing."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sparklog.core.controller.state.node_acls import closed_acl
from sparklog.model.zookeeper import ConnectionLost, Create, Unread
from sparklog.model.zookeeper_access import (
    CREATOR_WRITES,
    OPEN,
    OPEN_ACCESS,
    Acl,
    NodeAccess,
    hashed,
    written_down,
)
from sparklog.testing.memory_zookeeper import MemoryZooKeeper, MemoryZooKeeperServer
from sparklog.zookeeper import tree_access
from sparklog.zookeeper.tree_access import Conversion, Goal, NotPrepared, convert

DIGEST = "broker:right"
CLUSTER = NodeAccess(lambda: DIGEST, closed_acl)
WITHOUT_CLOSING = NodeAccess(lambda: DIGEST)
WRONG = NodeAccess(lambda: "broker:wrong", closed_acl)
SERVERS = NodeAccess(lambda: "super:secret", lambda path: CREATOR_WRITES)
NODES = ("/brokers/ids", "/brokers/topics/t/partitions/0/state", "/config/users/alice", "/login_secret")

Connect = Callable[[NodeAccess], MemoryZooKeeper]


class World:
    """A server with a cluster's open nodes, as a start without set.acl has left them."""

    def __init__(self) -> None:
        self.server = MemoryZooKeeperServer()
        self.clients: list[MemoryZooKeeper] = []
        self.looked_at = 0
        before = self.connect(OPEN_ACCESS)
        for path in NODES:
            before.ensure_path(path)
        self.cluster = self.connect(CLUSTER)

    def connect(self, access: NodeAccess) -> MemoryZooKeeper:
        client = self.server.client(access=access)
        self.clients.append(client)
        return client

    def convert(self, goal: Goal, *, has_chroot: bool = True, by: Any = None) -> Conversion:
        return convert(by or self.cluster, goal, has_chroot=has_chroot, on_progress=self._note)

    def _note(self, count: int) -> None:
        self.looked_at += count

    def acls(self) -> dict[str, Acl]:
        return dict(self.server.tree._acls)

    def wanted(self) -> dict[str, Acl]:
        return {path: written_down(closed_acl(path), hashed(DIGEST)) for path in self.acls()}

    def is_open(self) -> bool:
        return set(self.acls().values()) == {OPEN}


@pytest.fixture
def world() -> Any:
    made = World()
    yield made
    for client in made.clients:
        client.close()


def test_every_node_is_closed_and_opened_again(world: World) -> None:
    nodes = len(world.acls())
    closing = world.convert(Goal.SECURE)
    assert (closing.changed, closing.unchanged, closing.left) == (nodes, nodes, {})
    assert world.acls() == world.wanted()
    assert world.looked_at == 2 * nodes
    opening = world.convert(Goal.OPEN)
    assert (opening.changed, opening.is_complete, world.is_open()) == (nodes, True, True)


def test_what_is_done_is_not_done_again(world: World) -> None:
    world.convert(Goal.SECURE)
    zxid = world.server.tree.zxid
    again = world.convert(Goal.SECURE)
    assert (again.changed, again.unchanged, world.server.tree.zxid) == (0, len(world.acls()), zxid)


class CutAfter:
    """ZooKeeper goes away after so many changes of grants."""

    def __init__(self, inner: MemoryZooKeeper, changes_max: int) -> None:
        self._inner = inner
        self._left = changes_max

    def set_acls(self, changes: Mapping[str, Acl]) -> dict[str, Unread | None]:
        done: dict[str, Unread | None] = {}
        for path, acl in changes.items():
            if not self._left:
                raise ConnectionLost("away")
            self._left -= 1
            done |= self._inner.set_acls({path: acl})
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.mark.parametrize("goal", Goal)
def test_a_cut_at_any_node_is_gone_on_from(world: World, goal: Goal) -> None:
    if goal is Goal.OPEN:
        world.convert(Goal.SECURE)
    nodes = len(world.acls())
    for changes in range(nodes):
        with pytest.raises(ConnectionLost):
            world.convert(goal, by=CutAfter(world.cluster, 1 if changes else 0))
    last = world.convert(goal)
    assert (last.changed, last.is_complete) == (1, True)
    assert world.is_open() if goal is Goal.OPEN else world.acls() == world.wanted()


def test_many_nodes_are_changed_in_several_rounds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_access, "NODES_AT_A_TIME", 2)
    assert world.convert(Goal.SECURE).is_complete
    assert world.acls() == world.wanted()


def test_a_node_that_is_made_meanwhile_is_closed_as_well(world: World) -> None:
    late = world.connect(OPEN_ACCESS)

    class Busy(CutAfter):
        def children_many(self, paths: Any) -> Any:
            found = self._inner.children_many(paths)
            if late.exists("/brokers/topics/late") is None and world.acls()["/brokers/topics"] == OPEN:
                late.ensure_path("/brokers/topics/late")
            return found

    assert world.convert(Goal.SECURE, by=Busy(world.cluster, 1_000)).is_complete
    assert world.acls() == world.wanted()


def test_a_node_of_another_owner_is_left_and_named(world: World) -> None:
    theirs = world.connect(SERVERS)
    theirs.ensure_path("/brokers/topics/theirs/partitions")
    hidden = world.connect(NodeAccess(lambda: "hidden:secret", lambda path: closed_acl("/config/users")))
    hidden.ensure_path("/config/topics")
    conversion = world.convert(Goal.SECURE)
    assert conversion.left == {
        "/brokers/topics/theirs": "it belongs to user 'super', with a password of its own",
        "/brokers/topics/theirs/partitions": "it belongs to user 'super', with a password of its own",
        "/config/topics": "it is closed to this user, with all below it",
    }
    theirs.set_acls(dict.fromkeys(conversion.left, OPEN))
    hidden.set_acls({"/config/topics": OPEN})
    assert world.convert(Goal.SECURE).is_complete


@pytest.mark.parametrize("goal", Goal)
def test_a_wrong_password_changes_nothing(world: World, goal: Goal) -> None:
    world.convert(Goal.SECURE)
    before = world.acls()
    conversion = world.convert(goal, by=world.connect(WRONG))
    assert (conversion.changed, conversion.is_complete, world.acls()) == (0, False, before)
    assert conversion.left["/"] == "it belongs to user 'broker', with a password of its own"


@pytest.mark.parametrize("path", ["/controller", "/brokers/ids/1", "/applications/app"])
def test_a_cluster_that_would_be_locked_out_is_not(world: World, path: str) -> None:
    running = world.connect(WITHOUT_CLOSING)
    running.ensure_path("/applications")
    running.multi([Create(path, ephemeral=True)])
    with pytest.raises(NotPrepared, match=rf"{path} runs without zookeeper\.set\.acl"):
        world.convert(Goal.SECURE)
    assert world.is_open()
    running.close()
    world.connect(CLUSTER).multi([Create(path, ephemeral=True)])
    assert world.convert(Goal.SECURE).is_complete


def test_a_cluster_that_goes_on_closing_is_not_opened(world: World) -> None:
    world.convert(Goal.SECURE)
    before = world.acls()
    running = world.connect(CLUSTER)
    running.create("/controller", ephemeral=True)
    with pytest.raises(NotPrepared, match=r"/controller runs with zookeeper\.set\.acl=true"):
        world.convert(Goal.OPEN)
    running.close()
    assert world.acls() == before
    world.connect(WITHOUT_CLOSING).create("/controller", ephemeral=True)
    assert world.convert(Goal.OPEN).is_complete
    assert world.is_open()


def with_servers_own(world: World) -> dict[str, Acl]:
    """Nodes as a server has them at first; those that stay."""
    world.connect(OPEN_ACCESS).ensure_path("/zookeeper/quota")
    world.connect(NodeAccess(lambda: "super:s", lambda path: CREATOR_WRITES)).create("/zookeeper/config")
    return {"/zookeeper/config": world.acls()["/zookeeper/config"]}


def test_without_a_chroot_the_servers_root_and_own_nodes_are_covered(world: World) -> None:
    stays = with_servers_own(world)
    assert world.convert(Goal.SECURE, has_chroot=False).is_complete
    assert world.acls() == world.wanted() | stays
    assert world.convert(Goal.OPEN, has_chroot=False).is_complete
    assert {path: acl for path, acl in world.acls().items() if acl != OPEN} == stays


def test_without_a_chroot_others_keep_their_nodes_and_the_open_root_is_named(world: World) -> None:
    with_servers_own(world)
    world.connect(OPEN_ACCESS).ensure_path("/hbase/table")
    conversion = world.convert(Goal.SECURE, has_chroot=False)
    assert conversion.left == {
        "/": "others have nodes there (/hbase), and may delete /controller; give a cluster a path of its own"
    }
    opened = {path for path, acl in world.acls().items() if acl == OPEN}
    assert opened == {"/", "/hbase", "/hbase/table", "/zookeeper", "/zookeeper/quota"}
    assert world.convert(Goal.OPEN, has_chroot=False).is_complete
