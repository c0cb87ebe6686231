"""The search for a coordinator: one question, and what the answer says."""

from types import SimpleNamespace

import pytest

from sparklog.client.coordinator import Coordinator as FoundCoordinator
from sparklog.client.coordinator import found_in, search
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId
from sparklog.wire.messages.discovery.find_coordinator import (
    TRANSACTION_KEY,
    Coordinator,
    FindCoordinatorResponse,
)


def test_a_search_is_for_one_key():
    asked = search("x", TRANSACTION_KEY)
    assert (asked.coordinator_keys, asked.key_type) == (["x"], TRANSACTION_KEY)


def test_the_answer_names_the_coordinator_s_address():
    answer = FindCoordinatorResponse(coordinators=[Coordinator(key="x", node_id=2, host="h", port=9092)])
    assert found_in(answer) == (ErrorCode.none, "", Node(BrokerId(2), "h", 9092))


def test_a_refusal_keeps_the_broker_s_reason():
    refused = Coordinator(key="x", error_code=ErrorCode.invalid_request, error_message="its key is empty")
    found = found_in(FindCoordinatorResponse(coordinators=[refused]))
    assert (found.error, found.message) == (ErrorCode.invalid_request, "its key is empty")


@pytest.mark.parametrize("count", [0, 2])
def test_an_answer_that_does_not_name_one_coordinator_is_an_error(count):
    answer = FindCoordinatorResponse(coordinators=[Coordinator(key="x", node_id=2)] * count)
    found = found_in(answer)
    assert (found.error, f"names {count} coordinators" in found.message) == (
        ErrorCode.unknown_server_error,
        True,
    )


class Refusing:
    """A cluster whose brokers know no coordinator until the time is over."""

    bootstrap_servers = "h:1"

    def deadline(self):
        return SimpleNamespace(remaining_ms=1)

    def call_any(self, request, error_of, *, timeout_ms):
        refused = Coordinator(
            key="g", error_code=ErrorCode.coordinator_not_available, error_message="ask again"
        )
        return FindCoordinatorResponse(coordinators=[refused])


def test_a_search_in_vain_ends_with_the_broker_s_words_and_what_was_asked():
    with pytest.raises(KafkaError) as refused:
        FoundCoordinator(Refusing(), "g").find()
    assert refused.value.code is ErrorCode.coordinator_not_available
    assert refused.value.message == "ask again (that of group 'g' was asked for at h:1)"
