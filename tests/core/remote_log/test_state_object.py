"""The ``.state`` object: to bytes and back, and what is refused."""

from dataclasses import replace

import pytest
from crc32c import crc32c

from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.remote_log.page import ManifestError
from sparklog.core.remote_log.remote_segment import RemoteSegment
from sparklog.core.remote_log.state_object import HEAD, SegmentState, build_state, parse_state
from tests.core.remote_log.manifests import segment

STATE = SegmentState(((0, 0), (3, 40)), (AbortedTransaction(7, 10, 20, 15),), b"producers")


def sealed(data: bytes) -> RemoteSegment:
    """The segment whose manifest says that this is its state."""
    return replace(segment(0, 50), state_bytes=len(data), state_crc=crc32c(data))


@pytest.mark.parametrize("state", [STATE, SegmentState((), (), b"")])
def test_a_state_comes_back(state: SegmentState) -> None:
    data = build_state(segment(0, 50).segment_id, state)
    assert parse_state(sealed(data), data) == state


def test_a_state_that_is_cut_or_flipped_is_refused() -> None:
    data = build_state(segment(0, 50).segment_id, STATE)
    for position in range(len(data)):
        for wrong in (data[:position], data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :]):
            with pytest.raises(ManifestError, match="not those that were written"):
                parse_state(sealed(data), wrong)


def test_the_state_of_another_segment_is_refused() -> None:
    data = build_state(segment(1, 50).segment_id, STATE)
    with pytest.raises(ManifestError, match="that of another segment"):
        parse_state(sealed(data), data)


def test_a_state_with_wrong_counts_is_refused() -> None:
    data = bytearray(build_state(segment(0, 50).segment_id, STATE))
    data[12] += 1
    with pytest.raises(ManifestError, match="that of another segment"):
        parse_state(sealed(bytes(data)), bytes(data))


def test_a_newer_version_is_refused() -> None:
    data = bytearray(build_state(segment(0, 50).segment_id, STATE))
    data[8] = 2
    with pytest.raises(ManifestError, match="version 2: this release reads 1"):
        parse_state(sealed(bytes(data)), bytes(data))
    assert HEAD.size == 40
