"""What is copied, what goes from disks, and where history begins."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.core.remote_log.decisions import (
    Limits,
    local_start_after_deletion,
    next_copy,
    start_after_retention,
)
from sparklog.core.remote_log.reach import OffsetRange, RemoteLog, SealedSegment


def segments(*ends: int, base: int = 0) -> list[SealedSegment]:
    """Sealed segments that end at these offsets; a byte for each offset, times equal to the last offset."""
    bases = [base, *ends[:-1]]
    return [SealedSegment(one, end, end - 1, end - one) for one, end in zip(bases, ends, strict=True)]


def log(*ends: int, base: int = 0, start: int = 0) -> RemoteLog:
    return RemoteLog(start, tuple(segments(*ends, base=base)) if ends else ())


def copy(
    log: RemoteLog, sealed: list[SealedSegment], log_start: int = 0, stable: int = 1_000
) -> OffsetRange | None:
    return next_copy(log, sealed, log_start_offset=log_start, last_stable_offset=stable)


def test_the_oldest_segment_that_is_not_in_the_tier_is_copied() -> None:
    sealed = segments(10, 20, 30)
    assert copy(log(), sealed) == OffsetRange(0, 10)
    assert copy(log(10), sealed) == OffsetRange(10, 20)
    assert copy(log(10, 20, 30), sealed) is None
    assert copy(log(), []) is None


def test_what_may_still_be_aborted_is_not_copied() -> None:
    assert copy(log(10), segments(10, 20, 30), stable=19) is None
    assert copy(log(10), segments(10, 20, 30), stable=20) == OffsetRange(10, 20)


def test_a_new_leader_that_sealed_elsewhere_begins_where_the_tier_ends() -> None:
    assert copy(log(10, 20), segments(15, 27, 40)) == OffsetRange(20, 27)


def test_a_replica_that_began_anew_behind_the_tiers_start_copies_on() -> None:
    assert copy(log(10, 20), segments(35, base=18)) == OffsetRange(20, 35)


def test_segments_below_the_logs_start_are_not_copied() -> None:
    assert copy(log(), segments(10, 20, 30), log_start=10) == OffsetRange(10, 20)
    assert copy(log(10), segments(10, 20, 30), log_start=25) == OffsetRange(20, 30)


def test_what_has_expired_from_the_tier_is_not_copied_again() -> None:
    assert copy(log(start=20), segments(10, 20, 30)) == OffsetRange(20, 30)


def deletion(
    log: RemoteLog, limits: Limits, active: int = 0, now: int = 100, shared: int = 1_000
) -> int | None:
    return local_start_after_deletion(
        log, segments(10, 20, 30), limits, shared_end=shared, active_bytes=active, now_ms=now
    )


def test_only_what_is_in_the_tier_is_deleted_locally_however_old() -> None:
    at_once = Limits(age_ms=0, size_bytes=0)
    assert deletion(log(), at_once) is None
    assert deletion(log(10, 20), at_once) == 20
    assert deletion(log(15), at_once) == 10, "the segment in which the tier ends stays"


def test_what_the_tier_has_of_a_log_that_was_lost_deletes_nothing() -> None:
    at_once = Limits(age_ms=0, size_bytes=0)
    assert deletion(log(10, 20, 30), at_once, shared=25) == 20
    assert deletion(log(10, 20, 30), at_once, shared=0) is None
    assert deletion(log(10, 20, 30), at_once) == 30


def test_local_segments_go_by_age_from_the_oldest_on() -> None:
    assert deletion(log(10, 20, 30), Limits(age_ms=85), now=100) == 10
    assert deletion(log(10, 20, 30), Limits(age_ms=91), now=100) is None
    assert deletion(log(10, 20, 30), Limits(), now=10**12) is None


def test_local_segments_go_by_size_while_enough_is_left() -> None:
    assert deletion(log(10, 20, 30), Limits(size_bytes=20)) == 10
    assert deletion(log(10, 20, 30), Limits(size_bytes=21)) is None
    assert deletion(log(10, 20, 30), Limits(size_bytes=20), active=15) == 20


def history(log: RemoteLog, limits: Limits, log_start: int = 0, local: int = 0, now: int = 100) -> int:
    return start_after_retention(log, limits, log_start_offset=log_start, local_only_bytes=local, now_ms=now)


def test_history_begins_behind_what_has_expired() -> None:
    assert history(log(10, 20, 30), Limits()) == 0
    assert history(log(10, 20, 30), Limits(age_ms=85)) == 10
    assert history(log(10, 20, 30), Limits(size_bytes=10)) == 20
    assert history(log(10, 20, 30), Limits(size_bytes=10), local=10) == 30
    assert history(log(), Limits(age_ms=0)) == 0


def test_deleted_records_begin_history_within_a_segment_and_no_longer_count_for_its_size() -> None:
    assert history(log(10, 20, 30), Limits(), log_start=12) == 12
    assert history(log(10, 20, 30, start=20), Limits(size_bytes=10)) == 20


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_no_record_above_the_start_is_ever_in_neither_place(data: st.DataObject) -> None:
    """Leaders with other segments take turns; they copy, delete locally and expire, in any order."""
    boundaries = st.lists(st.integers(1, 400), min_size=1, max_size=12, unique=True).map(sorted)
    replicas = [segments(*data.draw(boundaries)) for _ in range(3)]
    stable = data.draw(st.integers(0, 400))
    now = log()
    for _ in range(data.draw(st.integers(1, 30))):
        leader = data.draw(st.integers(0, 2))
        sealed = replicas[leader]
        limits = Limits(
            data.draw(st.none() | st.integers(0, 500)), data.draw(st.none() | st.integers(0, 300))
        )
        match data.draw(st.sampled_from(["copy", "delete", "expire"])):
            case "copy":
                wanted = copy(now, sealed, now.start_offset, stable)
                if wanted is not None:
                    assert wanted.end_offset <= stable
                    copied = SealedSegment(wanted.base_offset, wanted.end_offset, wanted.end_offset - 1, 10)
                    now = RemoteLog(now.start_offset, (*now.segments, copied))
            case "delete":
                gone = local_start_after_deletion(
                    now, sealed, limits, shared_end=500, active_bytes=0, now_ms=500
                )
                replicas[leader] = [one for one in sealed if gone is None or one.end_offset > gone]
            case "expire":
                start = history(now, limits, now.start_offset, now=500)
                assert start >= now.start_offset
                now = RemoteLog(start, tuple(one for one in now.segments if one.end_offset > start))
        check_nothing_is_missing(now, replicas)


def check_nothing_is_missing(now: RemoteLog, replicas: list[list[SealedSegment]]) -> None:
    for one, other in zip(now.segments, now.segments[1:], strict=False):
        assert one.end_offset == other.base_offset or one.end_offset <= now.start_offset
    for sealed in replicas:
        if sealed and now.end_offset is not None:
            assert sealed[0].base_offset <= max(now.end_offset, now.start_offset)
