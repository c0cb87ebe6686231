"""What a log remembers beside its records follows from them."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from simulation.invariants.invariant import Invariant, Violation
from simulation.truth import Entry, PartitionTruth, ReplicaView, history_of
from sparklog.broker.partition.partition import Partition
from sparklog.core.producers.producer_state import BATCHES_KEPT, ProducerState
from sparklog.core.replication.epoch_history import EpochEntry
from sparklog.model.ids import ProducerId
from sparklog.model.write_ids import is_of_a_write


class Sequenced(NamedTuple):
    """A producer's batch; the later one in a log is the greater."""

    first_offset: int
    last_offset: int
    first_sequence: int
    last_sequence: int

    @classmethod
    def of(cls, entry: Entry) -> "Sequenced":
        length = entry.next_offset - entry.base_offset - 1
        return cls(entry.base_offset, entry.next_offset - 1, entry.sequence, entry.sequence + length)

    def __str__(self) -> str:
        return f"{self.first_offset}..{self.last_offset} (number {self.first_sequence}..{self.last_sequence})"


class ProducersAreAsTheLogSays(Invariant):
    """A log knows the last batches of each producer that are in it, with their numbers and the producer's
    epoch, and none that are not: as a replay of it says. What was removed at its start it may remember, or
    not. All of it is compared after a start, a cut, or compaction; else what was appended.

    A replica that begins anew behind a history is told its leader's last batches, of which some are still to
    come: earlier ones, which are on no disk of its own, it may lack until then.

    Compaction goes by what the log has, also what is cut later: then some that are remembered, by a snapshot
    from before, may be missing. (Whoever sent what was cut had an answer for those.)
    """

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        log = partition.log
        if partition.is_offline or log.corruption is not None or not (added or view.is_read_anew):
            return
        if view.is_read_anew and truth.rots(view.member):
            return  # a producer's id may have rotted where no start reads it
        entries = history_of(truth, view) if view.is_read_anew else added
        replayed = _replay(entries)
        producers = {*replayed, *log.producers.producers} if view.is_read_anew else replayed.keys()
        for producer in sorted(producers):
            epoch, batches = replayed.get(producer, (-1, []))
            state = log.producers.producers.get(ProducerId(producer))
            known = _remembered(state, log.log_start_offset)
            if state is None and view.is_read_anew and batches and batches[-1].last_offset < view.log_start:
                continue
            if batches and (state is None or state.epoch != epoch):
                known_epoch = "none" if state is None else state.epoch
                what = f"in epoch {known_epoch}; its last batch in the log is of epoch {epoch}"
                raise self.broken(truth, f"broker {view.broker_id} knows producer {producer} {what}")
            there = batches[-BATCHES_KEPT:]
            if not view.is_read_anew:
                known = known[max(0, len(known) - len(there)) :]
            if known != there and not (view.is_read_anew and _is_explained(truth, view, known, batches)):
                raise self.broken(
                    truth,
                    f"broker {view.broker_id} remembers of producer {producer} the batches {_told(known)}; "
                    f"the last in its log are {_told(there)}",
                )


def _replay(entries: Sequence[Entry]) -> dict[int, tuple[int, list[Sequenced]]]:
    """Of each producer its last epoch, and the batches that it sent in that. A member of a write is forgotten
    with its marker.
    """
    replayed: dict[int, tuple[int, list[Sequenced]]] = {}
    for entry in entries:
        if entry.producer_id < 0:
            continue
        if is_of_a_write(entry.producer_id) and entry.sequence < 0:
            replayed.pop(entry.producer_id, None)
            continue
        epoch, batches = replayed.get(entry.producer_id, (-1, []))
        if epoch != entry.producer_epoch:
            batches = []
            replayed[entry.producer_id] = entry.producer_epoch, batches
        if entry.sequence >= 0:  # coordinators number nothing
            batches.append(Sequenced.of(entry))
    return replayed


def _is_explained(
    truth: PartitionTruth, view: ReplicaView, known: list[Sequenced], in_log: list[Sequenced]
) -> bool:
    if view.history_start < view.log_start and _lacks_only_older(known, in_log, view.log_start):
        return True
    known_end = known[-1].first_offset if known else -1
    return truth.is_thinned and (
        _fits(known, in_log)
        or (view.was_cut and known_end < view.end_offset and _forgets_only_older(known, in_log))
    )


def check_producers_at_rest(truth: PartitionTruth, view: ReplicaView) -> None:
    """Of a log that begins behind a history: it knows all that a replay of the whole says. (One that lost its
    end meanwhile may know less of what was before it began anew, which had been answered by then; and so may
    one that an election made the truth before all had come of which its leader told it, and who follows it.
    Where nobody allowed or demanded that election, a log that began anew knows at least the last batch.)
    """
    if view.log is None or view.history_start >= view.log_start or view.was_cut:
        return
    for producer, (_, batches) in _replay(history_of(truth, view)).items():
        known = _remembered(view.log.producers.producers.get(ProducerId(producer)), view.history_start)
        there = batches[-BATCHES_KEPT:]
        may_lack = truth.lossy_epoch >= 0 and (bool(known) or truth.was_allowed)
        is_excused = may_lack and _lacks_only_older(known, batches, view.log_start)
        if known[-len(there) :] != there and not is_excused:
            raise Violation(
                "ProducersAreAsTheLogSays",
                f"{truth.topic_partition}: at rest broker {view.broker_id}, whose disk begins at "
                f"{view.log_start}, remembers of producer {producer} the batches {_told(known)}; the last in "
                f"its history are {_told(there)}",
            )


def _lacks_only_older(known: list[Sequenced], in_log: list[Sequenced], disk_start: int) -> bool:
    """Whether what is missing is older than all that is known, and on no disk of that log."""
    there = in_log[-BATCHES_KEPT:]
    lacking = max(0, len(there) - len(known))
    return there[lacking:] == known and all(one.last_offset < disk_start for one in there[:lacking])


def _fits(known: list[Sequenced], in_log: list[Sequenced]) -> bool:
    """Whether what is missing is older than all that is there, too."""
    there = [batch for batch in known if batch in in_log]
    if not there:
        return not in_log
    return known[-len(there) :] == there and _forgets_only_older(known, in_log)


def _forgets_only_older(known: list[Sequenced], in_log: list[Sequenced]) -> bool:
    """Whether nothing in the log is forgotten for which there is room."""
    forgotten = [batch for batch in in_log if batch not in known]
    return not forgotten or (len(known) == BATCHES_KEPT and forgotten[-1] < known[0])


def _remembered(state: ProducerState | None, log_start: int) -> list[Sequenced]:
    """The batches of a producer that the log remembers and should still have."""
    return [
        Sequenced(batch.first_offset, batch.last_offset, batch.first_sequence, batch.last_sequence)
        for batch in (() if state is None else state.batches)
        if batch.last_offset >= log_start
    ]


def _told(batches: list[Sequenced]) -> str:
    return f"[{', '.join(map(str, batches))}]"


class EpochsAreAsTheLogSays(Invariant):
    """A log's epoch history says of every batch the epoch that is written in it, and names no other epochs:
    each begins with its first batch, or where the log begins now. The last one may have no batch yet, when a
    leader has just begun it.

    In a compacted log an epoch may begin before the first batch that is left of it, and have none left.
    """

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        log, history = partition.log, partition.log.epochs.entries
        if partition.is_offline or log.corruption is not None:
            return
        if view.is_read_anew and truth.rots(view.member):
            return
        start, latest = log.log_start_offset, log.epochs.latest_epoch
        is_known = (start, history) == view.epochs_checked and not view.is_read_anew
        if is_known and all(entry.leader_epoch == latest for entry in added):
            return
        trouble = trouble_with(history, history_of(truth, view), start, is_thinned=truth.is_thinned)
        if trouble is not None:
            told = [tuple(one) for one in history]
            raise self.broken(
                truth,
                f"broker {view.broker_id}, whose log begins at {start}, has the epochs {told}, but {trouble}",
            )
        view.epochs_checked = start, list(history)


def trouble_with(
    history: Sequence[EpochEntry], entries: Sequence[Entry], log_start: int, *, is_thinned: bool
) -> str | None:
    """What ``history`` says otherwise than these batches, whose epochs never fall."""
    at = bisect_right(entries, log_start, key=_next_offset)
    end_of_all = entries[-1].next_offset if entries else 0
    if at < len(entries) and (
        not history or history[0].start_offset > max(entries[at].base_offset, log_start)
    ):
        return f"{entries[at]} is in none of them"
    for number, (epoch, start) in enumerate(history):
        is_last = number + 1 == len(history)
        next_start: int = end_of_all if is_last else history[number + 1].start_offset
        end = bisect_left(entries, next_start, key=_base_offset)
        if at < end:
            begins = max(entries[at].base_offset, log_start)
            for entry in (entries[at], entries[end - 1]):
                if entry.leader_epoch != epoch:
                    return f"{entry} is in epoch {epoch} of them"
            if start != begins and not is_thinned:
                return f"epoch {epoch} begins with {entries[at]}"
        elif not is_last and not is_thinned:
            return f"there is no batch of epoch {epoch}"
        elif start > max(end_of_all, log_start) and not is_thinned:
            return f"the log ends before epoch {epoch} begins"
        at = max(at, end)
    return None


def _base_offset(entry: Entry) -> int:
    return entry.base_offset


def _next_offset(entry: Entry) -> int:
    return entry.next_offset
