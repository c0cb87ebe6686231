"""Bugs of the cut of a batch read: when leaders are asked, what they name, and what is hidden."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.client.transactions import cut, cut_rounds
from sparklog.client.transactions.cut import PartitionCut
from sparklog.client.transactions.cut_rounds import Conversation, Visibilities
from sparklog.core.producers import transactions
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.ids import ProducerId, TopicPartition
from sparklog.records.envelope import BatchHeader
from sparklog.storage.readable_log import ReadableLog
from sparklog.storage.segments import segment_search


def _cuts_are_made_in_one_round(switch: Switch) -> None:
    """Leaders are asked once, for what is open: nobody says what was ended while others were asked."""

    def made(topic_partitions: Iterable[TopicPartition]) -> Conversation:
        answers: Mapping[TopicPartition, Any] = yield Visibilities(dict.fromkeys(topic_partitions, 0), True)
        return cut.cut_of(answers)

    switch.instead(cut_rounds, "made", made)
    switch.instead(ReadableLog, "writes_ended_since", lambda self, offset: frozenset())


def _cuts_hide_producers_instead_of_writes(switch: Switch) -> None:
    """Leaders name the members that they know to be open, and the others of the same write are shown."""

    def member_alone(producer_id: ProducerId) -> tuple[int, int]:
        return producer_id, 0

    for module in (transactions, segment_search, cut):
        switch.instead(module, "write_and_member", member_alone)


def _cuts_end_at_the_last_stable_offset(switch: Switch) -> None:
    """Each partition is read as far as a read-committed consumer reads it."""

    def hides(self: PartitionCut, header: BatchHeader) -> bool:
        return header.last_offset >= self.stable_offset

    switch.instead(Watermarks, "stable_offset_of_clients", lambda self: self.last_stable_offset)
    switch.instead(PartitionCut, "hides", hides)


CUTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "cuts-are-made-in-one-round",
        "cut in one round",
        "a batch read shows half of a write that commits meanwhile",
        120,
        _cuts_are_made_in_one_round,
        Hunt(kinds=("kill broker", "delay answers", "hang connections"), writes=1.0),
    ),
    Mutant(
        "cuts-hide-producers-instead-of-writes",
        "cut by producer instead of by write",
        "a batch read shows what some tasks of a write have written, and not what others have",
        60,
        _cuts_hide_producers_instead_of_writes,
        Hunt(kinds=("kill broker",), writes=1.0),
    ),
    Mutant(
        "cuts-end-at-the-last-stable-offset",
        "cut by last stable offset",
        "another open transaction hides a committed write in one partition and not in the next",
        20,
        _cuts_end_at_the_last_stable_offset,
        Hunt(kinds=("kill broker",), writes=1.0),
        is_quick=True,
    ),
)
