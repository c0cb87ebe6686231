"""Notifications of changes go fifteen minutes after a controller in office has seen them."""

from sparklog.controller.notification_purge import KEPT_MS, NotificationPurge
from sparklog.model.zookeeper import Create
from sparklog.testing.memory_zookeeper import MemoryZooKeeperServer

CHANGE = Create("/config/changes/config_change_", sequential=True)


class Clock:
    now_ms = 0

    def monotonic_ms(self):
        return self.now_ms

    def wall_ms(self):
        return self.now_ms


def test_a_notification_goes_fifteen_minutes_after_it_was_seen():
    clock, is_in_office = Clock(), True
    with MemoryZooKeeperServer().client() as zookeeper:
        zookeeper.ensure_path("/config/changes")
        purge = NotificationPurge(zookeeper, ["/config/changes", "/none"], clock, lambda: is_in_office)
        zookeeper.multi([CHANGE, CHANGE])
        purge.purge()
        zookeeper.multi([CHANGE])
        clock.now_ms = KEPT_MS - 1
        purge.purge()
        assert len(zookeeper.children("/config/changes")) == 3
        clock.now_ms, is_in_office = KEPT_MS, False
        purge.purge()
        assert len(zookeeper.children("/config/changes")) == 3
        is_in_office = True
        zookeeper.delete("/config/changes/config_change_0000000000")  # by another tool
        purge.purge()
        assert zookeeper.children("/config/changes") == ["config_change_0000000002"]
        clock.now_ms = 2 * KEPT_MS
        purge.purge()
        assert zookeeper.children("/config/changes") == []
