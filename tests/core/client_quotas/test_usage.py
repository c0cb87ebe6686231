"""What entities have used, and which of them are remembered."""

from sparklog.core.client_quotas.quota_table import QuotaTable, Shared
from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.core.client_quotas.usage import ENTITIES_MAX, RateUsage
from sparklog.model.quota_entity import QuotaEntity


def usage_of(**bounds):
    table = QuotaTable()
    for parts, bound in bounds.values():
        table.put(QuotaEntity(parts), bound)
    return RateUsage(table, Windows())


def test_all_clients_of_a_user_share_the_user_s_quota_and_nobody_else():
    usage = usage_of(any_user=((("user", None),), 100.0))
    assert usage.record("alice", "one", 1_000, 0) == 0
    assert usage.record("alice", "two", 1_000, 0) == 10_000
    assert usage.record("bob", "one", 1_000, 0) == 0


def test_each_client_of_any_client_s_quota_has_its_own():
    usage = usage_of(any_client=((("client-id", None),), 100.0))
    assert usage.record("alice", "one", 1_500, 0) == 5_000
    assert usage.record("alice", "two", 1_000, 0) == 0
    assert usage.record("bob", "one", 0, 0) == 5_000


def test_without_a_quota_nothing_is_remembered():
    usage = usage_of()
    assert usage.record("alice", "one", 10**9, 0) == 0
    assert len(usage.recent) == 0


def test_clients_under_ever_new_names_are_forgotten_once_they_are_idle():
    usage = usage_of(any_client=((("client-id", None),), 100.0))
    for number in range(10_000):
        usage.record("u", f"client-{number}", 1, number * 10)
    assert len(usage.recent) <= 1_101


def test_beyond_the_bound_the_one_that_was_idle_longest_is_forgotten():
    usage = usage_of(any_client=((("client-id", None),), 100.0))
    usage.record("u", "busy", 2_000, 0)
    for number in range(ENTITIES_MAX + 10):
        usage.record("u", f"client-{number}", 1, 1)
        usage.record("u", "busy", 0, 1)
    assert len(usage.recent) == ENTITIES_MAX
    assert usage.record("u", "busy", 0, 1) > 0


def test_a_request_may_use_all_of_the_shortest_measured_time_at_once():
    usage = usage_of(alice=((("user", "alice"),), 1.5))
    assert usage.most_at_once("alice", "app") == 15
    assert usage.most_at_once("bob", "app") is None


def test_metrics_show_those_that_were_active_last():
    usage = usage_of(any_client=((("client-id", None),), 100.0))
    for number in range(5):
        usage.record("u", f"client-{number}", 1_000 * number, number)
    shown = usage.used(2, 5)
    assert [(one.shared, one.bound) for one in shown] == [
        (Shared("", "client-4"), 100.0),
        (Shared("", "client-3"), 100.0),
    ]
    assert shown[0].delay_ms == 30_000 - 1
    assert 399 < shown[0].rate <= 400
