"""Leaders whose process may have ended, as their followers see before the controller does.

A client that loses its leader asks another broker for the leader within a millisecond, long before an
election can be over. An answer that names the dead leader again ends the client's search: librdkafka then
asks again only after a second. A follower loses its connection to the leader at the same moment. Its broker's
Metadata say LEADER_NOT_AVAILABLE for a doubted leader, and clients ask again after their shortest pause.

A lost connection is a doubt for ``LOST_MS``, in which a follower connects again. A refused connection is a
doubt for ``REFUSED_MS``. Only the first of each kind since the leader's last answer counts, because a
firewall may refuse brokers for long and let clients through: the controller then rightly names that leader.
A doubt is of one incarnation of a broker.
"""

from dataclasses import dataclass
from typing import Final

from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.time import Clock, MonotonicMs

LOST_MS: Final = 100
REFUSED_MS: Final = 3_000


@dataclass(frozen=True, slots=True)
class _Doubt:
    broker_epoch: BrokerEpoch
    is_refused: bool
    until_ms: MonotonicMs
    """Exclusive."""


class DoubtedLeaders:
    """Which leaders may have ended. Any thread may use it: each method changes a dict in one step."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._doubts: dict[BrokerId, _Doubt] = {}

    def on_connection_error(self, leader: BrokerId, broker_epoch: BrokerEpoch, error: OSError) -> None:
        """The connection to ``leader`` was refused, was lost, or could not be made.

        A leader that is silent on its connection, and what this side ends, is no cause for doubt.
        """
        if isinstance(error, ConnectionError) and not isinstance(error, ConnectionAbortedError):
            self._doubt(leader, broker_epoch, is_refused=isinstance(error, ConnectionRefusedError))

    def _doubt(self, leader: BrokerId, broker_epoch: BrokerEpoch, *, is_refused: bool) -> None:
        known = self._doubts.get(leader)
        if known is None or known.broker_epoch != broker_epoch or (is_refused and not known.is_refused):
            lasts_ms = REFUSED_MS if is_refused else LOST_MS
            until_ms = MonotonicMs(self._clock.monotonic_ms() + lasts_ms)
            self._doubts[leader] = _Doubt(broker_epoch, is_refused, until_ms)

    def on_answer(self, leader: BrokerId) -> None:
        self._doubts.pop(leader, None)

    def has_refused(self, leader: BrokerId, broker_epoch: BrokerEpoch) -> bool:
        """Whether this incarnation has refused a connection since its last answer."""
        doubt = self._doubts.get(leader)
        return doubt is not None and doubt.broker_epoch == broker_epoch and doubt.is_refused

    def has(self, leader: BrokerId, broker_epoch: BrokerEpoch) -> bool:
        """Whether this incarnation of the broker is doubted now."""
        doubt = self._doubts.get(leader)
        return (
            doubt is not None
            and doubt.broker_epoch == broker_epoch
            and self._clock.monotonic_ms() < doubt.until_ms
        )
