"""Brokers that ended a moment ago, which Metadata name for ``LISTED_MS`` more.

A broker that leaves and the leaders that replace it are in the same update of the controller. librdkafka
takes a broker that Metadata no longer name for decommissioned: it ends that broker's thread, and what waits
there, as a request of a transaction, is repeated only after its longer pauses. A broker that stays listed is
one to which the connection failed: librdkafka moves its work to the new leaders at once. Kafka lists a dead
broker likewise, for the rest of its session. ``has_left`` of the answer tells sparklog's own client that
the broker is not live.

A broker that was silent until its session expired is listed no longer. On the connection to it a client may
have requests without an answer. librdkafka sends these again when Metadata no longer name that broker. If
that comes after the news of the next leader, newer records of the same producer have overtaken them.
"""

from collections.abc import Mapping, Set
from typing import Final

from sparklog.model.cluster_facts import Broker
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.time import Clock, MonotonicMs

LISTED_MS: Final = 3_000


class DepartedBrokers:
    """Which brokers ended lately. Any thread may use it: each method replaces a dict in one step."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._departed: dict[BrokerId, tuple[Broker, MonotonicMs]] = {}
        """Each with the time until which it is listed, exclusive."""

    def on_live_brokers(
        self,
        before: Mapping[BrokerId, Broker],
        live: Mapping[BrokerId, Broker],
        ended: Set[BrokerEpoch],
    ) -> None:
        """The controller reported ``live`` brokers, and had reported those of ``before``.

        ``ended``: the epochs of brokers that are known to have ended.
        """
        now_ms = self._clock.monotonic_ms()
        until_ms = MonotonicMs(now_ms + LISTED_MS)
        departed = {one: entry for one, entry in self._departed.items() if now_ms < entry[1]}
        departed.update({one: (broker, until_ms) for one, broker in before.items() if broker.epoch in ended})
        self._departed = {one: entry for one, entry in departed.items() if one not in live}

    def now(self, live: Mapping[BrokerId, Broker]) -> list[Broker]:
        """Those that ended less than ``LISTED_MS`` ago and are not ``live`` again, by id."""
        now_ms = self._clock.monotonic_ms()
        departed = sorted(self._departed.items())
        return [broker for one, (broker, until_ms) in departed if now_ms < until_ms and one not in live]
