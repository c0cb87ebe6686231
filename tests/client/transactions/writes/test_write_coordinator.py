"""What a write says of brokers that do not know atomic writes."""

from typing import Any

import pytest

from sparklog.client.transactions.writes.failed_writes import WriteFailed
from sparklog.client.transactions.writes.write_coordinator import check_served
from sparklog.client.transactions.writes.write_driver import commit_write
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.model.errors import ErrorCode, KafkaError

WRITE = WriteIdentity("query-q", 1, "run", is_plain=False)


class OldBrokers:
    def require(self, api_key: int) -> None:
        raise KafkaError(ErrorCode.unsupported_version, f"127.0.0.1:9092 serves no version of {api_key}")


@pytest.mark.parametrize("ask", [check_served, lambda old: commit_write(old, WRITE, [], timeout_ms=5)])
def test_an_old_broker_is_named_with_the_release_to_install_and_the_way_out(ask: Any) -> None:
    """Also to the commit of a micro-batch whose tasks had no rows, and so asked nobody."""
    with pytest.raises(WriteFailed) as refused:
        ask(OldBrokers())
    assert str(refused.value) == (
        "nothing is written: the brokers do not know atomic writes (127.0.0.1:9092 serves no version of "
        "10000). They are of a release before sparklog 0.1.0, or not sparklog's. Upgrade all of them, or "
        "write with option delivery=at-least-once"
    )
