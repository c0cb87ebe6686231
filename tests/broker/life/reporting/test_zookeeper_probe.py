"""How fast ZooKeeper answers: the slowest of the last minute counts."""

from sparklog.broker.life.reporting.zookeeper_probe import INTERVAL_MS, KEPT, ZooKeeperProbe
from sparklog.model.loops import Pause
from sparklog.model.zookeeper import ConnectionLost


class SlowZooKeeper:
    """Both the clock and the ZooKeeper: an answer takes as long as ``answer_ms`` says."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.answer_ms = 0
        self.is_away = False

    def monotonic_ms(self) -> int:
        return self.now_ms

    def sync(self) -> None:
        self.now_ms += self.answer_ms
        if self.is_away:
            raise ConnectionLost("no answer")


def test_the_slowest_answer_of_the_last_minute_counts_also_one_that_does_not_come():
    world = SlowZooKeeper()
    probe = ZooKeeperProbe(world, world)
    assert probe.slowest_ms == 0
    loop = probe.loop()
    seen = []
    for answer_ms in (3, 900, *[4] * (KEPT - 1), 5):
        world.answer_ms = answer_ms
        assert next(loop) == Pause(INTERVAL_MS)
        seen.append(probe.slowest_ms)
    assert seen == [3, *[900] * KEPT, 5]
    world.answer_ms, world.is_away = 18_000, True
    next(loop)
    assert probe.slowest_ms == 18_000
