"""Rules of the columns of a typed topic, over what clients are told of them and what they read.

VersionsNeverChange         a version has the same columns, ids and types for ever
IdsAreNeverUsedAgain        a column that is new has an id that no version had
EachVersionIsMadeOnce       who is told that a change was made finds just that change in its version
LeadersKnowTheirColumns     a leader has the columns of what it appends, in the partition's directory
ColumnsAreThoseOfTheirIds   readers have the values of the ids that they planned, or are told of what
                            does not fit
"""

from simulation.invariants.invariant import Invariant, Violation
from simulation.marks import Marks
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.broker.partition.partition import Partition
from sparklog.model.schema.data_types import Columns, all_fields
from sparklog.model.schema.document import SchemaDocument
from sparklog.records.arrow.topic_columns import VersionColumns
from sparklog.records.envelope import BatchHeader

Send = tuple[int, int, int]
"""A batch, by its producer, epoch and sequence."""


class ColumnRules(Invariant):
    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self.written: dict[Send, tuple[Columns, range]] = {}
        """Of each batch: the columns of its version, and the numbers of its rows."""
        self.versions: dict[Send, int] = {}
        self.crcs: dict[Send, int] = {}
        self.newest: SchemaDocument | None = None
        """That anybody was told of."""
        self._made: dict[int, SchemaDocument] = {}

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        if not partition.is_leader:
            return
        for entry in added:
            version = self.versions.get(entry.send)
            if version is None or entry.leader_epoch != partition.leader_epoch:
                continue
            kept = partition.log.schema.document
            if kept is None or kept.version < version:
                known = 0 if kept is None else kept.version
                what = f"{truth.topic_partition}: {entry} is of version {version}, its leader has {known}"
                raise Violation("LeadersKnowTheirColumns", what)

    def wrote(self, header: BatchHeader, version: VersionColumns, numbers: range) -> None:
        """Somebody is about to send the rows with these numbers."""
        send = header.producer_id, header.producer_epoch, header.base_sequence
        self.written[send] = version.columns, numbers
        self.versions[send] = version.version
        self.crcs[send] = header.crc

    def see(self, document: SchemaDocument) -> None:
        """Somebody was told of these columns."""
        known = self.newest
        if known is not None:
            older, newer = sorted((known, document), key=lambda one: one.version)
            _check_follows(older, newer)
        for version, made in self._made.items():
            if version <= document.version and document.at(version) != made.at(version):
                raise _broken("EachVersionIsMadeOnce", made.at(version), document.at(version), version)
        if known is None or document.version > known.version:
            self.newest = document

    def made(self, outcome: SchemaDocument, version: int) -> None:
        """Somebody was told that a change was made, whose outcome should be this, in this version."""
        if version != outcome.version:
            raise Violation(
                "EachVersionIsMadeOnce",
                f"a change of version {outcome.version - 1} is said to have made version {version}",
            )
        other = self._made.setdefault(version, outcome)
        if other.at(version) != outcome.at(version):
            raise _broken("EachVersionIsMadeOnce", other.at(version), outcome.at(version), version)
        if self.newest is not None and version <= self.newest.version:
            self.see(self.newest)

    def check_row(self, found: object, wanted: object, where: str) -> None:
        if found != wanted:
            raise Violation("ColumnsAreThoseOfTheirIds", f"{where}: a reader has {found}, and not {wanted}")


def _check_follows(older: SchemaDocument, newer: SchemaDocument) -> None:
    for version in range(1, older.version + 1):
        if older.at(version) != newer.at(version):
            raise _broken("VersionsNeverChange", older.at(version), newer.at(version), version)
    used = {field.id for version in range(1, older.version + 1) for field in all_fields(older.at(version))}
    for version in range(older.version + 1, newer.version + 1):
        before = {field.id for field in all_fields(newer.at(version - 1))}
        now = {field.id for field in all_fields(newer.at(version))}
        if (now - before) & used:
            what = f"version {version} gives ids {sorted((now - before) & used)} to other columns"
            raise Violation("IdsAreNeverUsedAgain", what)
        used |= now


def _broken(rule: str, one: Columns, other: Columns, version: int) -> Violation:
    return Violation(rule, f"version {version} is {one}, and it is {other}")
