"""How long the coordinator of an atomic write is waited for."""

from typing import Any

import pytest

from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog_datasource.writing import outputs
from sparklog_datasource.writing.outputs import MemberOutput
from sparklog_datasource.writing.write_options import WriteOptions

WRITE = WriteIdentity("app", 1, "run", is_plain=False)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Milliseconds that a member of a write with these options waits for each answer."""
    waits: list[int] = []

    def member(*_: Any, timeout_ms: int) -> None:
        waits.append(timeout_ms)

    monkeypatch.setattr(outputs, "WriteMember", member)

    def of(**options: str) -> int:
        given = WriteOptions.of({"kafka.bootstrap.servers": "127.0.0.1:1", **options})
        MemberOutput(given, None, WRITE)  # type: ignore[arg-type]
        return waits[-1]

    return of


def test_the_first_write_of_a_cluster_may_create_its_topic_however_short_the_delivery(patience: Any) -> None:
    assert patience(**{"kafka.delivery.timeout.ms": "500"}) == 60_000
    assert patience(**{"kafka.delivery.timeout.ms": "500", "kafka.max.block.ms": "700"}) == 700
    assert patience() == 120_000
