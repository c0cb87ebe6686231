"""Chores by the clock."""

import threading

from sparklog.broker.life.housekeeping import Housekeeping
from sparklog.model.settings.config import BrokerConfig


class Replicas:
    """A broker whose first look for lagging followers meets a bug."""

    def __init__(self) -> None:
        self.ticks, self.looked_again = 0, threading.Event()

    def on_tick(self) -> None:
        self.ticks += 1
        if self.ticks == 1:
            raise KeyError("a bug")
        self.looked_again.set()

    def checkpoint_high_watermarks(self) -> None:
        pass

    checkpoint_recovery_points = delete_old_segments = expire_producers = checkpoint_high_watermarks
    remove_late_files = flush_by_time = checkpoint_high_watermarks


def test_a_chore_that_fails_is_done_again_at_its_next_time() -> None:
    replicas = Replicas()
    housekeeping = Housekeeping(replicas, BrokerConfig.parse({"replica.lag.time.max.ms": "20"}))
    housekeeping.start()
    assert replicas.looked_again.wait(5)
    housekeeping.close()
