"""Messages of formats 0 and 1, byte for byte."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.model.errors import ErrorCode
from sparklog.records.legacy.message import BadMessage, Message, build, messages_of

GOLDEN = {
    0: "0000000000000000000000117a0a65ca0000000000036b6579ffffffff"
    "000000000000000100000013acc084000000ffffffff0000000576616c7565",
    1: "0000000000000000000000198e7e3b4001000000015d3ef79800000000036b6579ffffffff"
    "00000000000000010000001b7c709d3001000000015d3ef79801ffffffff0000000576616c7565",
}
"""A key without value, then a value without key, as kafka-python writes them."""

TIME_MS = 1_500_000_000_000


def resealed(message: bytes) -> bytes:
    """With the right CRC, whatever its bytes are."""
    return message[:12] + struct.pack(">I", zlib.crc32(message[16:])) + message[16:]


def refused(data: bytes, error: ErrorCode) -> str:
    with pytest.raises(BadMessage) as raised:
        list(messages_of(memoryview(data)))
    assert raised.value.error is error
    return str(raised.value)


@pytest.mark.parametrize("form", GOLDEN)
def test_messages_are_those_of_other_clients(form: int) -> None:
    golden = bytes.fromhex(GOLDEN[form])
    times = [TIME_MS, TIME_MS + 1] if form else [-1, -1]
    first, second = messages_of(memoryview(golden))
    assert first == Message(0, form, 0, times[0], b"key", None)
    assert second == Message(1, form, 0, times[1], None, b"value")
    assert build(form, 0, times[0], b"key", None) + build(form, 1, times[1], None, b"value") == golden


@given(
    st.sampled_from([0, 1]),
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**63 - 1),
    st.none() | st.binary(max_size=50),
    st.none() | st.binary(max_size=50),
    st.integers(0, 15),
)
def test_what_is_built_is_parsed(form, offset, timestamp_ms, key, value, attributes) -> None:
    built = build(form, offset, timestamp_ms, key, value, attributes)
    [message] = messages_of(memoryview(built))
    assert message == Message(offset, form, attributes, timestamp_ms if form else -1, key, value)


@pytest.mark.parametrize("form", GOLDEN)
def test_a_set_that_is_cut_anywhere_within_a_message_is_corrupt(form: int) -> None:
    golden = bytes.fromhex(GOLDEN[form])
    whole = {0, len(build(form, 0, TIME_MS, b"key", None)), len(golden)}
    for length in set(range(len(golden))) - whole:
        refused(golden[:length], ErrorCode.corrupt_message)


@pytest.mark.parametrize("form", GOLDEN)
def test_a_bit_that_flips_anywhere_but_in_the_offset_is_found(form: int) -> None:
    message = build(form, 7, TIME_MS, b"key", b"value")
    for position in range(8, len(message)):
        damaged = bytearray(message)
        damaged[position] ^= 0x10
        with pytest.raises(BadMessage):
            list(messages_of(memoryview(damaged)))


def test_the_crc_is_compared_before_lengths_are_believed() -> None:
    message = bytearray(build(0, 7, -1, b"key", b"value"))
    message[18:22] = struct.pack(">i", 2**31 - 1)  # the key's length
    assert "the CRC" in refused(bytes(message), ErrorCode.corrupt_message)
    assert "end within its fields" in refused(resealed(message), ErrorCode.invalid_record)


def test_sizes_that_cannot_be_are_corrupt() -> None:
    message = bytearray(build(0, 7, -1, b"key", b"value"))
    for size in (-1, 0, 13, 2**31 - 1):
        message[8:12] = struct.pack(">i", size)
        refused(bytes(message), ErrorCode.corrupt_message)


def test_a_message_that_is_too_short_for_its_format_is_refused() -> None:
    without = build(0, 7, -1, None, None)
    as_format_1 = without[:16] + b"\x01" + without[17:]
    assert "end within its fields" in refused(resealed(as_format_1), ErrorCode.invalid_record)


def test_bytes_after_the_value_are_refused() -> None:
    message = build(0, 7, -1, b"key", b"value") + b"more"
    longer = message[:8] + struct.pack(">i", len(message) - 12) + message[12:]
    assert "4 bytes are left" in refused(resealed(longer), ErrorCode.invalid_record)


def test_a_length_below_zero_means_null_as_in_kafka() -> None:
    message = build(0, 7, -1, None, b"value")
    other = resealed(message[:18] + struct.pack(">i", -5) + message[22:])
    [parsed] = messages_of(memoryview(other))
    assert (parsed.key, parsed.value) == (None, b"value")


@pytest.mark.parametrize(
    ("form", "error"),
    [(2, ErrorCode.invalid_record), (3, ErrorCode.corrupt_message), (255, ErrorCode.corrupt_message)],
)
def test_other_formats_are_refused(form: int, error: ErrorCode) -> None:
    message = bytearray(build(0, 7, -1, None, None))
    message[16] = form
    assert f"format {form}" in refused(bytes(message), error)
