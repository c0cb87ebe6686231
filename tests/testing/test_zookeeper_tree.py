import pytest

from sparklog.model.zookeeper import Check, Create, Delete, MultiFailed, SessionExpired, SetData
from sparklog.testing.zookeeper_tree import Firing, ZooKeeperTree


@pytest.fixture
def tree() -> ZooKeeperTree:
    return ZooKeeperTree()


@pytest.fixture
def session(tree: ZooKeeperTree) -> int:
    return tree.open_session()


def test_a_multi_is_one_transaction(tree: ZooKeeperTree, session: int) -> None:
    tree.apply(session, [Create("/counter", b"1")])
    applied = tree.apply(
        session, [SetData("/counter", b"2", 0), Create("/a"), Create("/a/b", ephemeral=True)]
    )
    counter, child = tree.get("/counter"), tree.exists("/a/b")
    assert counter is not None
    assert child is not None
    assert applied.stats == [counter.stat, None, None]
    assert (counter.data, counter.stat.version) == (b"2", 1)
    assert counter.stat.mzxid == child.czxid == applied.zxid == tree.zxid
    assert child.ephemeral_owner == session


def test_a_refused_multi_leaves_no_trace_but_its_transaction_id(tree: ZooKeeperTree, session: int) -> None:
    tree.ensure_path(session, "/a/b")
    tree.apply(session, [Create("/e", b"e", ephemeral=True), SetData("/a/b", b"x", 0)])
    before = {path: (tree.get(path), tree.children(path)) for path in ("/", "/a", "/a/b", "/e", "/new")}
    zxid = tree.zxid
    replaced = [Delete("/e"), Create("/e"), Delete("/a/b"), Delete("/a"), Create("/a"), Create("/a/b")]
    with pytest.raises(MultiFailed) as failed:
        tree.apply(session, [*replaced, Create("/new"), SetData("/a/b", b"y", 0), Check("/a", 1)])
    assert (failed.value.index, failed.value.reason) == (8, "bad_version")
    assert {path: (tree.get(path), tree.children(path)) for path in before} == before
    assert tree.zxid == zxid + 1
    tree.check_invariants()


def test_a_refused_multi_fires_nothing(tree: ZooKeeperTree, session: int) -> None:
    tree.watch_data(session, "/a", "a")
    with pytest.raises(MultiFailed):
        tree.apply(session, [Create("/a"), Check("/a", 1)])
    assert tree.apply(session, [Create("/a")]).fired == [Firing(session, "a")]


def test_watches_fire_once_and_in_order(tree: ZooKeeperTree, session: int) -> None:
    other = tree.open_session()
    tree.apply(session, [Create("/a")])
    tree.watch_children(other, "/", "parent")
    tree.watch_children(session, "/a", "its children")
    tree.watch_data(other, "/a", "its data")
    fired = tree.apply(session, [Delete("/a")]).fired
    assert fired == [Firing(other, "its data"), Firing(session, "its children"), Firing(other, "parent")]
    assert tree.apply(session, [Create("/a"), SetData("/a", b"", 0), Delete("/a")]).fired == []


def test_a_watch_on_children_of_a_missing_node_waits_for_the_node(tree: ZooKeeperTree, session: int) -> None:
    tree.watch_children(session, "/a", "come")
    assert tree.apply(session, [Create("/a")]).fired == [Firing(session, "come")]


def test_a_session_that_expires_takes_its_ephemeral_nodes_along(tree: ZooKeeperTree, session: int) -> None:
    other = tree.open_session()
    tree.apply(session, [Create("/e", ephemeral=True), Create("/p")])
    tree.watch_data(session, "/p", "its own")
    tree.watch_data(other, "/e", "another's")
    assert tree.expire_session(session) == [Firing(session, "its own"), Firing(other, "another's")]
    assert tree.children("/") == ["p"]
    assert tree.sessions == [other]
    with pytest.raises(SessionExpired):
        tree.apply(session, [Create("/late")])
    tree.check_invariants()


def test_a_session_that_closes_hears_nothing(tree: ZooKeeperTree, session: int) -> None:
    tree.apply(session, [Create("/e", ephemeral=True)])
    tree.watch_data(session, "/e", "gone")
    assert tree.close_session(session) == []


def test_a_lost_connection_fires_every_watch_of_the_session_and_no_other(
    tree: ZooKeeperTree, session: int
) -> None:
    other = tree.open_session()
    tree.watch_data(session, "/a", "a")
    tree.watch_data(other, "/a", "other")
    tree.watch_children(session, "/", "root")
    assert tree.lose_watches(session) == [Firing(session, "a"), Firing(session, "root")]
    assert tree.apply(session, [Create("/a")]).fired == [Firing(other, "other")]


def test_a_path_that_is_none_is_refused_before_anything_happens(tree: ZooKeeperTree, session: int) -> None:
    with pytest.raises(ValueError, match="'a/b'"):
        tree.apply(session, [Create("/a"), Create("a/b")])
    assert tree.children("/") == []


def test_the_same_calls_give_the_same_answers() -> None:
    def story() -> list[object]:
        tree = ZooKeeperTree()
        session = tree.open_session()
        return [session, tree.apply(session, [Create("/a", ephemeral=True)]), tree.get("/a"), tree.zxid]

    assert story() == story()


def test_sequential_names_count_all_children_that_a_node_has_had(tree: ZooKeeperTree, session: int) -> None:
    tree.apply(session, [Create("/changes"), Create("/changes/change_", sequential=True)])
    tree.apply(session, [Create("/changes/other"), Delete("/changes/other")])
    with pytest.raises(MultiFailed):
        tree.apply(session, [Create("/changes/change_", sequential=True), Check("/changes", 1)])
    tree.watch_children(session, "/changes", "changes")
    applied = tree.apply(session, [Create("/changes/change_", b"two", sequential=True)])
    assert tree.children("/changes") == ["change_0000000000", "change_0000000002"]
    assert applied.fired == [Firing(session, "changes")]
    tree.apply(session, [Delete("/changes/change_0000000000"), Delete("/changes/change_0000000002")])
    tree.apply(session, [Delete("/changes"), Create("/changes"), Create("/changes/n", sequential=True)])
    assert tree.children("/changes") == ["n0000000000"]


def test_a_sequential_node_needs_its_parent(tree: ZooKeeperTree, session: int) -> None:
    with pytest.raises(MultiFailed) as failed:
        tree.apply(session, [Create("/changes/change_", sequential=True)])
    assert failed.value.reason == "no_node"
