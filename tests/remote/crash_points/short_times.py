"""The tier's long times and large pages, made small: a page for each segment, garbage after a second."""

from collections.abc import Callable
from typing import Any

from sparklog.broker.remote_log.copying import catalog, garbage_search
from sparklog.core.remote_log import head

GRACE_MS = 1_000
_SMALL = (
    (head, "TAIL_MAX", 1),
    (garbage_search, "GRACE_MS", GRACE_MS),
    (garbage_search, "GARBAGE_INTERVAL_MS", 200),
    (garbage_search, "WHOLE_STORE_INTERVAL_MS", 200),
    (catalog, "HEAD_AGE_MAX_MS", 50),
)


def shorten(put: Callable[[Any, str, int], None]) -> None:
    """``put``: ``setattr``, or pytest's, which takes it back."""
    for module, name, value in _SMALL:
        put(module, name, value)
