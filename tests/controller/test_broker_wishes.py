"""An application follows what is wished of its brokers."""

from dataclasses import dataclass, field

from sparklog.controller.broker_wishes import LOOK_AGAIN_MS, follow_wishes, read_wishes
from sparklog.core.controller.state.applications import KnownBroker, encode_known, known_broker_path
from sparklog.core.controller.state.wishes import Wish
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Await
from sparklog.model.zookeeper import ConnectionLost, Node, Stat

ONE, TWO = BrokerId(1), BrokerId(2)


@dataclass
class WatchedNodes:
    nodes: dict = field(default_factory=dict)
    watches: dict = field(default_factory=dict)
    is_away: bool = False

    def watch_data(self, path, callback):
        if self.is_away:
            raise ConnectionLost("away")
        self.watches[path] = callback

    def get_many(self, paths):
        return [self.nodes.get(path) for path in paths]

    def put(self, broker, wish):
        path = known_broker_path(broker)
        self.nodes[path] = Node(encode_known(KnownBroker(wish=wish)), Stat(0, 1, 1))
        if path in self.watches:
            self.watches.pop(path)()


def test_all_brokers_are_told_first_and_then_those_that_changed():
    zookeeper, obeyed = WatchedNodes(), []
    zookeeper.put(ONE, Wish.serving)
    loop = follow_wishes(zookeeper, [ONE, TWO], obeyed.append)
    waiting = next(loop)
    assert isinstance(waiting, Await)
    assert [list(one) for one in obeyed] == [[ONE]], "broker 2 has no node yet"
    zookeeper.put(TWO, Wish.stopped)
    assert waiting.signal.is_given
    loop.send(True)
    assert {one: known.wish for one, known in obeyed[-1].items()} == {TWO: Wish.stopped}
    assert set(zookeeper.watches) == {known_broker_path(ONE), known_broker_path(TWO)}


def test_while_zookeeper_is_away_they_are_read_again_later():
    zookeeper, obeyed = WatchedNodes(is_away=True), []
    zookeeper.put(ONE, Wish.drained)
    loop = follow_wishes(zookeeper, [ONE], obeyed.append)
    assert next(loop).timeout_ms == LOOK_AGAIN_MS
    zookeeper.is_away = False
    loop.send(False)
    assert obeyed[0][ONE].wish is Wish.drained


def test_brokers_without_a_node_are_left_out():
    zookeeper = WatchedNodes()
    zookeeper.put(ONE, Wish.removed)
    assert read_wishes(zookeeper, [ONE, TWO])[ONE].wish is Wish.removed
    assert TWO not in read_wishes(zookeeper, [TWO])
