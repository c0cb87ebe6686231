"""Whose clock records go by, and how far they may be from the leader's."""

import pyarrow as pa
import pytest

from sparklog.model.errors import ErrorCode
from sparklog.records.payload import payload, payload_of
from sparklog.records.payload_kinds import SUPPORTED_PAYLOADS, PayloadKind
from sparklog.records.timestamps import check_create_times, stamp_append_time
from sparklog.records.validate import Accepted, RefusedBatch, check_produced

NOW_MS = 1_700_000_000_000


def produced(kind: PayloadKind, times_ms: list[int]) -> tuple[bytearray, Accepted]:
    columns = pa.table(
        {
            "key": pa.array([b"k"] * len(times_ms), pa.binary()),
            "value": pa.array([b"v"] * len(times_ms), pa.binary()),
            "timestamp": pa.array([ms * 1_000 for ms in times_ms], pa.timestamp("us", tz="UTC")),
        }
    )
    data = bytearray(payload(kind).from_columns(columns, now_ms=NOW_MS))
    accepted = check_produced(data, max_batch_bytes=1 << 20, payload_kinds=SUPPORTED_PAYLOADS)
    assert isinstance(accepted, Accepted)
    return data, accepted


@pytest.mark.parametrize("kind", list(PayloadKind))
def test_the_leaders_time_is_given_to_all_records_and_the_crc_holds(kind: PayloadKind) -> None:
    data, accepted = produced(kind, [NOW_MS - 50, NOW_MS - 90, NOW_MS - 70])
    stamped = stamp_append_time(data, accepted, NOW_MS)
    assert isinstance(stamped, Accepted)
    again = check_produced(data, max_batch_bytes=1 << 20, payload_kinds=SUPPORTED_PAYLOADS)
    assert again == stamped
    header = stamped.batches[0][1]
    assert (header.is_log_append_time, header.max_timestamp_ms) == (True, NOW_MS)
    columns = payload_of(header).to_columns(data, header)
    assert {time.timestamp() * 1_000 for time in columns.column("timestamp").to_pylist()} == {NOW_MS}
    assert columns.column("timestamp_type").to_pylist() == [1, 1, 1]


@pytest.mark.parametrize("kind", list(PayloadKind))
def test_records_too_old_or_too_far_ahead_are_refused(kind: PayloadKind) -> None:
    data, accepted = produced(kind, [NOW_MS + 50, NOW_MS - 90, NOW_MS - 70])
    far = check_create_times(data, accepted, NOW_MS, before_max_ms=2**63 - 1, after_max_ms=49)
    assert isinstance(far, RefusedBatch)
    assert (far.error, "50 ms ahead" in far.message) == (ErrorCode.invalid_timestamp, True)
    old = check_create_times(data, accepted, NOW_MS, before_max_ms=89, after_max_ms=2**63 - 1)
    assert isinstance(old, RefusedBatch)
    assert "90 ms old, more than message.timestamp.before.max.ms=89" in old.message
    assert check_create_times(data, accepted, NOW_MS, before_max_ms=90, after_max_ms=50) == accepted


@pytest.mark.parametrize("kind", list(PayloadKind))
def test_a_record_without_a_time_is_neither_too_old_nor_too_far_ahead(kind: PayloadKind) -> None:
    for times_ms, error in (([-1, -1], None), ([-1, NOW_MS - 90, NOW_MS], "90 ms old")):
        data, accepted = produced(kind, times_ms)
        verdict = check_create_times(data, accepted, NOW_MS, before_max_ms=89, after_max_ms=0)
        if error is None:
            assert verdict == accepted
        else:
            assert isinstance(verdict, RefusedBatch)
            assert error in verdict.message


@pytest.mark.parametrize("kind", list(PayloadKind))
def test_a_producer_may_not_speak_for_the_leaders_clock(kind: PayloadKind) -> None:
    data, accepted = produced(kind, [NOW_MS])
    stamped = stamp_append_time(data, accepted, NOW_MS)
    assert isinstance(stamped, Accepted)
    for verdict in (
        stamp_append_time(data, stamped, NOW_MS),
        check_create_times(data, stamped, NOW_MS, before_max_ms=2**63 - 1, after_max_ms=2**63 - 1),
    ):
        assert isinstance(verdict, RefusedBatch)
        assert verdict.error is ErrorCode.invalid_timestamp
