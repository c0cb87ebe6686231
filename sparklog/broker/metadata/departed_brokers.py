"""Brokers that have just left the cluster, which Metadata list for a moment longer.

librdkafka ends its connection to a broker that an answer no longer lists. If the same answer names new
leaders for that broker's partitions, librdkafka may do the former before the latter. The partitions then have
no broker until its next look at them, a second later. So a broker that leaves is listed for ``LISTED_MS``
more, while its partitions have other leaders already.
"""

from collections.abc import Mapping
from typing import Final

from sparklog.model.cluster import Broker, Node
from sparklog.model.ids import BrokerId
from sparklog.model.time import Clock, MonotonicMs

LISTED_MS: Final = 3_000


class DepartedBrokers:
    """Any thread may use it: the mapping is replaced as a whole."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._departed: Mapping[BrokerId, tuple[Broker, MonotonicMs]] = {}
        """Each with the time from which on it is not listed."""

    def on_update(self, before: Mapping[BrokerId, Broker], after: Mapping[BrokerId, Broker]) -> None:
        """The live brokers of the metadata have changed."""
        now_ms = self._clock.monotonic_ms()
        until_ms = MonotonicMs(now_ms + LISTED_MS)
        kept = {one: known for one, known in self._departed.items() if now_ms < known[1]}
        left = {one: (broker, until_ms) for one, broker in before.items() if one not in after}
        self._departed = {one: known for one, known in {**kept, **left}.items() if one not in after}

    def nodes(self, listener: str) -> dict[BrokerId, Node]:
        """Those that are still listed, as clients of ``listener`` knew them."""
        now_ms = self._clock.monotonic_ms()
        nodes = (broker.node(listener) for broker, until_ms in self._departed.values() if now_ms < until_ms)
        return {node.id: node for node in nodes if node is not None}
