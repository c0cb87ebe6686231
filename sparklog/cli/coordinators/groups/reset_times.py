"""Moments and durations as ``reset-offsets`` takes them: ISO 8601, as in Kafka's tool."""

import argparse
import re
from datetime import UTC, datetime, timedelta
from typing import Final

_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def moment(text: str) -> int:
    """Milliseconds since 1970 of ``YYYY-MM-DDTHH:MM:SS[.sss][+HH:MM]``; without an offset it is UTC."""
    try:
        if "T" not in text.upper():
            raise ValueError
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 2026-01-31T23:59:59 or 2026-01-31T23:59:59.500+01:00"
        ) from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return (parsed - _EPOCH) // _MILLISECOND


def duration(text: str) -> int:
    """Milliseconds of ``PnDTnHnMnS``; parts that are zero may be left out."""
    parts = _DURATION.fullmatch(text)
    given = (
        {}
        if parts is None
        else {unit: float(number) for unit, number in parts.groupdict("").items() if number}
    )
    if not given or text.upper().endswith("T"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as P7D, PT90M or P1DT12H")
    try:
        return timedelta(**given) // _MILLISECOND
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is too long a duration") from None
