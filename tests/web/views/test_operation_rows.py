"""Operations on brokers, as a view shows them."""

from typing import Any

from sparklog.web.views.operation_rows import operation_rows
from sparklog.wire.messages.discovery.cluster_report import ReportedOperation, ReportedWait


def operation(number: int, state: str = "running", **more: Any) -> ReportedOperation:
    return ReportedOperation(id_=number, state=state, **{"kind": "restart", **more})


def test_those_under_way_come_first_and_then_the_last_that_ended() -> None:
    reported = [operation(1, "done"), operation(2), operation(3, "failed"), operation(4)]
    assert [row["id"] for row in operation_rows(reported)] == [2, 4, 3, 1]


def test_a_restart_names_the_broker_it_is_at_and_those_that_follow() -> None:
    waits = [ReportedWait(words="partition a-0 has one replica in sync")]
    (row,) = operation_rows([operation(1, brokers=[3, 1, 2], done=1, total=3, waits=waits)])
    assert (row["now"], row["then"], row["unit"]) == (1, [2], "broker")
    assert row["waiting_for"] == ["partition a-0 has one replica in sync"]


def test_a_drain_counts_replicas_and_has_no_order_of_brokers() -> None:
    (row,) = operation_rows([operation(1, kind="drain", brokers=[3, 1], done=1, total=9)])
    assert (row["now"], row["then"], row["unit"]) == (None, [], "replica")


def test_what_has_ended_is_at_no_broker_any_more() -> None:
    (row,) = operation_rows([operation(1, "failed", brokers=[3, 1], done=1, total=2, reason="it is lost")])
    assert (row["now"], row["then"], row["reason"]) == (None, [], "it is lost")
