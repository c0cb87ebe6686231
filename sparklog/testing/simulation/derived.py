"""What a log remembers beside its records follows from them."""

from sparklog.broker.partition import Partition
from sparklog.core.transaction.producer_state import BATCHES_KEPT
from sparklog.model.ids import ProducerId
from sparklog.storage.log import Log
from sparklog.testing.simulation.invariants import Invariant
from sparklog.testing.simulation.truth import Entry, PartitionTruth, ReplicaView


class ProducersAreAsTheLogSays(Invariant):
    """After a start, a cut, or compaction a log knows the last batches of each producer that are in it, and
    none that are not. What was removed at its start it may remember, or not.

    Compaction goes by what the log has, also what is cut later: then some that are remembered, by a snapshot
    from before, may be missing. (Whoever sent what was cut had an answer for those.)
    """

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        log = partition.log
        if not view.is_read_anew or partition.is_offline or log.corruption is not None:
            return
        in_log: dict[int, list[int]] = {number: [] for number in log.producers.producers}
        for entry in view.entries:
            if entry.producer_id >= 0:
                in_log.setdefault(entry.producer_id, []).append(entry.base_offset)
        for producer, offsets in sorted(in_log.items()):
            known = _remembered(log, producer)
            if known == offsets[-BATCHES_KEPT:]:
                continue
            known_end = known[-1] if known else -1
            is_explained = truth.is_thinned and (
                _fits(known, offsets)
                or (view.was_cut and known_end < view.end_offset and _forgets_only_older(known, offsets))
            )
            if not is_explained:
                raise self.broken(
                    truth,
                    f"broker {view.broker_id} remembers batches of producer {producer} at {known}; "
                    f"the last in its log are at {offsets[-BATCHES_KEPT:]}",
                )


def _fits(known: list[int], in_log: list[int]) -> bool:
    """Whether what is missing is older than all that is there, too."""
    there = [offset for offset in known if offset in in_log]
    if not there:
        return not in_log
    return known[-len(there) :] == there and _forgets_only_older(known, in_log)


def _forgets_only_older(known: list[int], in_log: list[int]) -> bool:
    """Whether nothing in the log is forgotten for which there is room."""
    forgotten = [offset for offset in in_log if offset not in known]
    return not forgotten or (len(known) == BATCHES_KEPT and forgotten[-1] < known[0])


def _remembered(log: Log, producer: int) -> list[int]:
    """Where the batches of a producer begin that the log remembers and should still have."""
    state = log.producers.producers.get(ProducerId(producer))
    batches = () if state is None else state.batches
    return [batch.first_offset for batch in batches if batch.last_offset >= log.log_start_offset]
