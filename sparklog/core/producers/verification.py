"""Verification: a producer's first batch of a transaction is appended only if its coordinator knows of it.

A late batch of an ended transaction would open one that nobody ends (KIP-890). So before a producer's first
batch in a partition the leader asks the producer's coordinator whether the partition is part of an ongoing
transaction. The batch waits meanwhile, without a thread, and not in this machine:

    guard = partition.begin_verification(batches)        None: append at once
    ... ask the coordinator, whichever it is ...         refused: answer, append nothing
    append a batch with its guard                        INVALID_TXN_STATE if the guard is void by then

A *guard* stands for one attempt. It is void once a marker of the producer was appended, because the answer
of the coordinator may be about the transaction that the marker ended (KAFKA-14402); once the leader epoch
ends, unless the same replica leads the next, because another leader may append a marker; and when a newer
epoch of the producer begins an attempt. After the first batch the transaction is open
in the log, and no guard is needed until its marker. Attempts of one producer epoch share their guard: any of
their batches may come to be the first.

The machine does not ask who the coordinator is.
"""

from dataclasses import dataclass, field
from typing import Final

from sparklog.model.ids import ProducerId
from sparklog.model.time import MonotonicMs

ATTEMPT_MAX_MS: Final = 300_000
"""Attempts that are older are forgotten: nobody waits as long for an answer."""


@dataclass(slots=True, eq=False)
class VerificationGuard:
    """One attempt of one producer in one partition. Guards are compared by identity."""

    producer_id: ProducerId
    producer_epoch: int
    is_refused: bool = False
    """Set once, by whoever gets the coordinator's answer that it has another producer: an epoch that nobody
    has must not keep the present one out.
    """


@dataclass(slots=True)
class Verifications:
    """The attempts under way in one partition; the object lives while the same replica leads, over epochs."""

    _attempts: dict[ProducerId, tuple[VerificationGuard, MonotonicMs]] = field(default_factory=dict)
    """The guard in force of each producer, and when its last attempt began."""

    def __len__(self) -> int:
        return len(self._attempts)

    def begin(self, producer_id: ProducerId, producer_epoch: int, now_ms: MonotonicMs) -> VerificationGuard:
        """The guard of an attempt that begins now. That of an older epoch than another attempt's is void
        from the beginning.
        """
        guard = VerificationGuard(producer_id, producer_epoch)
        known = self._attempts.get(producer_id)
        if known is not None and not known[0].is_refused:
            if known[0].producer_epoch > producer_epoch:
                return guard
            if known[0].producer_epoch == producer_epoch:
                guard = known[0]
        self._attempts[producer_id] = (guard, now_ms)
        return guard

    def holds(self, guard: VerificationGuard, producer_id: ProducerId, producer_epoch: int) -> bool:
        """Whether ``guard`` still lets a batch of this producer epoch be appended."""
        known = self._attempts.get(producer_id)
        return known is not None and known[0] is guard and guard.producer_epoch == producer_epoch

    def end(self, producer_id: ProducerId) -> None:
        """The producer's first batch, or a marker of it, was appended: its guard is void."""
        self._attempts.pop(producer_id, None)

    def forget_what_is_old(self, now_ms: MonotonicMs) -> None:
        old = [
            producer_id
            for producer_id, (_, began_ms) in self._attempts.items()
            if now_ms - began_ms >= ATTEMPT_MAX_MS
        ]
        for producer_id in old:
            del self._attempts[producer_id]
