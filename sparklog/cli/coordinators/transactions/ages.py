"""Moments and ages in words: when a transaction began, and for how long it has been open."""

from datetime import UTC, datetime, timedelta

from sparklog.cli.table import NOTHING


def moment_of(wall_ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC, to the second; ``-`` if there is no such moment."""
    if wall_ms < 0:
        return NOTHING
    try:
        return datetime.fromtimestamp(wall_ms / 1_000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return NOTHING


def age_ms_of(wall_ms: int, now_ms: int) -> int | None:
    """The time since ``wall_ms``; None for -1. Two hosts' clocks may differ, so it is never negative."""
    return None if wall_ms < 0 else max(0, now_ms - wall_ms)


def age_of(wall_ms: int, now_ms: int) -> str:
    """The time since ``wall_ms``, to the second, such as ``1 day, 2:03:04``; ``-`` for -1."""
    if wall_ms < 0:
        return NOTHING
    return str(timedelta(seconds=max(0, now_ms - wall_ms) // 1_000))
