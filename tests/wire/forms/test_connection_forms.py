"""When a connection has a form for its produces. ``fuzz.forms`` compares what forms read and write."""

import gc
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from sparklog.wire.codec import decode_request, encode_request
from sparklog.wire.forms.connection_forms import HEADERS_MAX, REPEATS_MIN, ConnectionForms
from sparklog.wire.forms.produce_form import FORM_BYTES_MAX
from sparklog.wire.messages.data.fetch import FetchRequest
from sparklog.wire.messages.data.list_offsets import ListOffsetsRequest
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest
from sparklog.wire.messages.discovery.find_coordinator import FindCoordinatorRequest
from sparklog.wire.messages.discovery.metadata import MetadataRequest
from sparklog.wire.messages.groups.list_groups import ListGroupsRequest
from sparklog.wire.versions import KNOWN_VERSIONS


def frame(topic="quakes", *, partition=0, records=b"batch", version=9, correlation_id=7, more=b"", **options):
    data = [ProducePartition(index=partition, records=records)]
    request = ProduceRequest(topic_data=[ProduceTopic(name=topic, partition_data=data)], **options)
    octets = encode_request(request, version, correlation_id, "client")[4:] + more
    return memoryview(bytearray(octets))


@pytest.fixture
def forms():
    return ConnectionForms()


def has_form(forms, asked):
    """Whether a frame is decoded by its form; in any case as the codec does."""
    request, form = forms.decode(asked)
    assert request == decode_request(asked)
    return form is not None


def test_a_form_is_made_of_requests_that_are_alike_and_read_from_then_on(forms):
    assert [has_form(forms, frame()) for _ in range(REPEATS_MIN + 2)] == [False] * REPEATS_MIN + [True] * 2


def test_requests_of_one_form_differ_in_partition_batch_and_number(forms):
    for number in range(REPEATS_MIN):
        has_form(forms, frame(partition=number, records=b"x" * number, correlation_id=number))
    assert has_form(forms, frame(partition=-5, records=b"y" * 300, correlation_id=-1))


@pytest.mark.parametrize("options", [{"topic": "others"}, {"acks": 1}, {"timeout_ms": 1}, {"version": 8}])
def test_a_request_of_another_form_is_decoded_and_its_form_replaces_the_last(forms, options):
    for _ in range(REPEATS_MIN):
        has_form(forms, frame())
    assert not has_form(forms, frame(**options))
    assert has_form(forms, frame())
    assert [has_form(forms, frame(**options)) for _ in range(REPEATS_MIN)] == [False] * (REPEATS_MIN - 1) + [
        True
    ]
    assert not has_form(forms, frame())


def test_requests_that_change_their_topic_each_time_have_no_form_made(forms):
    topics = ["one", "two", "three"] * 5
    assert not any(has_form(forms, frame(topic)) for topic in topics)


@pytest.mark.parametrize(
    "options",
    [
        {"topic": "x" * 250},
        {"topic": ""},
        {"records": None},
        {"more": b"!"},
        {"version": 4},
        {"transactional_id": "t" * FORM_BYTES_MAX},
        {"payload_kinds": (256,) * FORM_BYTES_MAX},
    ],
)
def test_some_requests_have_no_form(forms, options):
    assert not any(has_form(forms, frame(**options)) for _ in range(REPEATS_MIN + 2))


def held_bytes(frames):
    """What a connection holds after ``frames``, besides what all connections share.

    In a process of its own: threads that other tests have left allocate, too.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        return alone.submit(held_bytes_here, [bytes(one) for one in frames]).result(60)


def held_bytes_here(given):
    frames = [memoryview(one) for one in given]
    for one in frames:
        ConnectionForms().decode(one)
    gc.collect()
    tracemalloc.start()
    try:
        forms = ConnectionForms()
        for one in frames:
            forms.decode(one)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_a_connection_does_not_hold_what_a_request_has_beside_its_batch():
    asked = frame(payload_kinds=tuple(range(1_000, 11_000)), transactional_id="t" * 30_000)
    assert held_bytes([asked] * (REPEATS_MIN + 1)) < 10_000


def test_a_connection_holds_the_headers_of_a_few_apis_only():
    classes = (
        FindCoordinatorRequest,
        FetchRequest,
        ListOffsetsRequest,
        ApiVersionsRequest,
        ListGroupsRequest,
    )
    asked = [
        memoryview(encode_request(message(), version, 1, "c" * 200)[4:])
        for message in classes
        for version in range(KNOWN_VERSIONS[message.API_KEY].max + 1)
    ]
    assert len(asked) > HEADERS_MAX + 10
    assert held_bytes(asked) < HEADERS_MAX * 1_200


def test_other_apis_between_them_change_nothing(forms):
    for _ in range(REPEATS_MIN):
        has_form(forms, frame())
        assert not has_form(forms, memoryview(encode_request(MetadataRequest(), 12, 1, "client"))[4:])
    assert has_form(forms, frame())


def test_the_batch_is_a_view_into_its_own_frame(forms):
    for _ in range(REPEATS_MIN):
        has_form(forms, frame())
    asked = frame(records=b"stamped")
    records = forms.decode(asked)[0].body.topic_data[0].partition_data[0].records
    records[0] = ord("S")
    assert b"Stamped" in bytes(asked)
