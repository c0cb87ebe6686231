"""Requests that reach a broker before the controller's first report, and need what it says.

A broker listens before it is registered, and the controller reports the cluster to it a moment later. An
answer without brokers and topics would be believed: librdkafka then forgets every address that it had, and
never connects again. To close the connection would fail what else is under way on it, as a CreateTopics,
which no client sends twice. So such a request waits. After a second its connection is closed, because the
controller may be away, and other brokers know the cluster.
"""

from collections.abc import Callable
from typing import Final

from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.model.ports import Timer

WAIT_MAX_MS: Final = 1_000


class FirstReport:
    """Has requests wait for it. For any thread."""

    def __init__(self, metadata: MetadataCache, timer: Timer) -> None:
        self._metadata = metadata
        self._timer = timer

    def wait(self, go_on: Callable[[], None], give_up: Callable[[], None]) -> None:
        """Call ``go_on`` after the first report, on the thread that reports, or at last ``give_up``."""

        def end() -> None:
            if self._metadata.forget(report):
                give_up()

        def report() -> None:
            timeout.cancel()
            go_on()

        timeout = self._timer.after(WAIT_MAX_MS, end)
        self._metadata.when_received(report)
