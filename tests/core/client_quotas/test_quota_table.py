"""Which of the quotas that are set binds a request, by Kafka's eight precedences."""

import pytest

from sparklog.core.client_quotas.quota_table import QuotaTable, Shared
from sparklog.model.quota_entity import QuotaEntity

ANY = None

IN_ORDER = [
    ((("user", "alice"), ("client-id", "app")), Shared("alice", "app")),
    ((("user", "alice"), ("client-id", ANY)), Shared("alice", "app")),
    ((("user", "alice"),), Shared("alice", "")),
    ((("user", ANY), ("client-id", "app")), Shared("alice", "app")),
    ((("user", ANY), ("client-id", ANY)), Shared("alice", "app")),
    ((("user", ANY),), Shared("alice", "")),
    ((("client-id", "app"),), Shared("", "app")),
    ((("client-id", ANY),), Shared("", "app")),
]
"""What may bind alice's app, the first one before all others; and with which requests it is shared."""


def table_of(*entities):
    table = QuotaTable()
    for number, parts in enumerate(entities):
        table.put(QuotaEntity(parts), float(number))
    return table


@pytest.mark.parametrize("first", range(len(IN_ORDER)))
def test_the_most_specific_quota_binds(first):
    table = table_of(*reversed([parts for parts, _ in IN_ORDER[first:]]))
    limit = table.find("alice", "app")
    assert limit.bound == len(IN_ORDER) - first - 1
    assert limit.shared == IN_ORDER[first][1]


def test_another_user_and_another_client_are_not_bound():
    table = table_of((("user", "alice"),), (("user", "alice"), ("client-id", "app")), (("client-id", "app"),))
    assert table.find("bob", "other") is None
    assert table.find("bob", "app").shared == Shared("", "app")
    assert table.find("alice", "other").shared == Shared("alice", "")


def test_a_request_without_client_id_has_the_quota_of_any_client():
    table = table_of((("user", "alice"),), (("user", "alice"), ("client-id", ANY)), (("client-id", ANY),))
    assert table.find("alice", "").bound == 1.0
    assert table.find("bob", "").bound == 2.0


def test_a_user_who_is_called_as_the_default_is_stored_is_no_default():
    table = table_of((("user", "<default>"),))
    assert table.find("alice", "app") is None
    assert table.find("<default>", "app").bound == 0.0


def test_a_quota_that_was_removed_binds_nobody():
    table = table_of((("user", "alice"),))
    table.put(QuotaEntity((("user", "alice"),)), None)
    assert table.find("alice", "app") is None
    assert not table
