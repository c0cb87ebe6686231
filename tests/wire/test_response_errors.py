"""The error codes in a response, at whatever depth."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.wire.codec import message_class
from sparklog.wire.messages.data.fetch import FetchableTopicResponse, FetchPartitionData, FetchResponse
from sparklog.wire.messages.data.produce import (
    ProducePartitionResponse,
    ProduceResponse,
    ProduceTopicResponse,
)
from sparklog.wire.response_errors import errors_in
from sparklog.wire.versions import KNOWN_VERSIONS


def test_codes_of_partitions_and_of_the_whole_response_are_found():
    partitions = [
        ProducePartitionResponse(index=n, error_code=code)
        for n, code in enumerate((ErrorCode.none, ErrorCode.not_leader_or_follower, ErrorCode.invalid_record))
    ]
    response = ProduceResponse(responses=[ProduceTopicResponse(name="t", partition_responses=partitions)])
    assert list(errors_in(response)) == [ErrorCode.not_leader_or_follower, ErrorCode.invalid_record]
    refused = FetchResponse(error_code=ErrorCode.fetch_session_id_not_found)
    assert list(errors_in(refused)) == [ErrorCode.fetch_session_id_not_found]


def test_a_response_without_errors_has_none():
    data = FetchPartitionData(partition_index=0)
    assert list(errors_in(FetchResponse(responses=[FetchableTopicResponse(partitions=[data])]))) == []


@pytest.mark.parametrize("api_key", KNOWN_VERSIONS)
def test_the_places_of_errors_are_known_for_every_response(api_key):
    """Each response class can be looked through, also before a request for it has arrived."""
    assert list(errors_in(message_class(api_key, "response")())) == []
