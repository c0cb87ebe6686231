"""What a run reached: situations that must come up somewhere, or the simulation proves less than it says.

A mark is counted when its situation comes up. The test suite fails if its seeds never reach one of
``ALL_MARKS``: workload and faults have drifted away from what they were made for.
"""

from collections import Counter
from typing import Final

ALL_MARKS: Final = (
    "a marker ended nothing",
    "a producer died in a transaction",
    "a producer was replaced in a transaction",
    "a read-committed reader read from a follower",
    "a change of columns was overtaken",
    "a reader mapped rows of another version",
    "a reader met columns that it did not know",
    "a reader was told of a value that its columns cannot hold",
    "a reader passed over an aborted transaction",
    "a second process was refused a directory's lock",
    "a twin of a static member began",
    "a transaction was aborted",
    "a transaction was aborted in another epoch",
    "a transaction was committed",
    "a transactional producer gave up what it had sent",
    "a transactional producer was fenced",
    "a version was committed before",
    "a write was aborted for its silence",
    "an acks=1 producer lost batches with a leader",
    "a batch rotted under its broker",
    "a bit of a batch flipped on its way",
    "a batch read saw an atomic write",
    "a block of producer ids was taken from another controller",
    "a broker came back with an empty disk",
    "a broker gave producer ids of two blocks",
    "a broker stopped cleanly",
    "a broker was replaced while it lived",
    "a cleaning was overtaken by a cut",
    "a consumer read an Arrow batch that was compacted",
    "a consumer read from a follower",
    "a consumer was given a rotten batch",
    "a consumer was given what only a store had",
    "a consumer was given records of an Arrow batch",
    "a commit between join and assignment was refused",
    "a commit of a write was refused",
    "a commit of another generation was refused",
    "a controller took over",
    "a controller took over with a move under way",
    "a controller took over with a topic being deleted",
    "a coordinator loaded",
    "a cut gave way to an earlier one",
    "a cut hid an atomic write",
    "a driver died in a write",
    "a driver was replaced in a write",
    "a follower cut its log",
    "a follower asked in the lean form",
    "a follower began anew behind a history",
    "a follower began anew where the leader's log begins",
    "a group was deleted",
    "a head has a page",
    "a history was cut behind an election that lost records",
    "a leader changed while a change of its ISR was pending",
    "a leader had no lean fetch",
    "a log directory failed, and its broker served on",
    "a log was compacted",
    "a log's start was raised",
    "a machine was rebooted after a clean stop",
    "a member was aborted for its silence",
    "a member was fenced by its twin",
    "a minimum was lowered",
    "a minimum was raised",
    "a move began",
    "a move was cancelled",
    "a move was finished",
    "a move was given another target",
    "a move changed the leader",
    "a new leader did not know the end yet",
    "a partition had no leader",
    "a partition was added",
    "a pipeline went on",
    "a position was not decided yet",
    "a power cut left a gap in a log",
    "a power cut undid changes of names",
    "a preferred election moved a leader",
    "a producer asked again for its id",
    "a producer crashed and was replaced",
    "a produce began while an earlier one waited",
    "a producer crashed before it was answered",
    "a producer gave up what had had no answer for long",
    "a producer named an id and got a fresh one",
    "a raw segment was copied",
    "a reader began in the middle of a log",
    "a record with acks=0 was lost",
    "a record with acks=1 was lost with its leader",
    "a record without an answer was there",
    "a record without an answer was not there",
    "a removed replica's log was deleted",
    "a replica that did not count had the greatest log",
    "a request went into a hanging connection",
    "a rotten batch was found and fetched again",
    "a segment was copied",
    "a send was refused for good",
    "a task was run twice at a time",
    "a task's message was lost",
    "a topic was created again under its name",
    "a topic was deleted",
    "an append of a coordinator was in doubt",
    "an atomic write was committed",
    "an election lost committed records where the topic allows it",
    "an eligible replica was elected",
    "an ISR of one",
    "an ISR below the minimum",
    "columns were changed",
    "nobody proven was left, and every record had been synced",
    "nobody proven was left, and the greatest log led",
    "retention removed committed records",
    "segments left a disk",
    "ZooKeeper was read in an earlier state",
)


class Marks:
    """Counts of one run."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def reach(self, mark: str) -> None:
        assert mark in _KNOWN, mark
        self.counts[mark] += 1


_KNOWN: Final = frozenset(ALL_MARKS)
