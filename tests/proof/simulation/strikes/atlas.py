"""The fault atlas: where a destructive fault keeps to what replication promises to survive.

So every violation is a bug. What a fault may have cost a replica is noted (``taint``): the witness excuses
that replica until it is counted in sync again, in a later incarnation.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from simulation.clients.administrator import Administrator
from simulation.disks.power import Directory
from simulation.machines.broker import Machine
from simulation.plans.faults import Fault, Kind
from simulation.plans.plan import Plan
from simulation.witness import Witness
from sparklog.core.controller.state.znodes import (
    decode_incarnation,
    decode_suspects,
    incarnation_path,
    suspects_path,
)
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.storage.log_directory import SUSPECTS
from sparklog.storage.small_files.meta_properties import FILE as IDENTITY
from sparklog.storage.small_files.partition_metadata import parse_uuid
from sparklog.testing.memory_zookeeper import ZooKeeperTree


@dataclass(slots=True)
class Atlas:
    """What may strike where, as things stand."""

    plan: Plan
    witness: Witness
    tree: ZooKeeperTree
    administrator: Administrator
    machines: Mapping[str, Machine]
    spared: Counter[Kind] = field(default_factory=Counter)
    """Faults that struck more mildly than they are called, or not at all, as more was not promised."""

    def spare(self, fault: Fault) -> None:
        self.spared[fault.kind] += 1

    def may_lose(self, broker_id: BrokerId) -> bool:
        """What replication with min.insync.replicas=2 promises to survive: that one replica loses its log."""
        if not self.plan.may_lose_one or not self.witness.truths or self._is_delicate(broker_id):
            return False
        for truth in self.witness.truths.values():
            isr = truth.state.isr if truth.state is not None else ()
            if truth.tainted or len(isr) < 2:
                return False
        return True

    def others_have_all(self, broker_id: BrokerId) -> bool:
        """Whether each ISR has another member, no replica elsewhere is damaged, and nobody moves any."""
        if self._is_delicate(broker_id):
            return False
        for truth in self.witness.truths.values():
            isr = truth.state.isr if truth.state is not None else ()
            if truth.tainted or all(member == broker_id for member in isr):
                return False
        return bool(self.witness.truths)

    def taint(self, broker_id: BrokerId) -> None:
        """This broker's replicas may have lost records."""
        self.witness.excuses.taint(broker_id, self.incarnation(broker_id))

    def lose_disk(self, broker_id: BrokerId) -> None:
        """This broker's replicas lose everything."""
        self.witness.excuses.lose_disk(broker_id, self.incarnation(broker_id))

    def distrust_what_is_doomed(self, machine: Machine) -> None:
        """Nothing is proven of a directory that an fsync or a write failed in; of this machine's others it
        is. A replica that never had a log here has none to prove: it may have been in that directory."""
        where = self._beside_what_is_doomed(machine) | self._without_a_log(machine)
        self.witness.excuses.distrust(machine.broker_id, where, self.incarnation(machine.broker_id))

    def taint_what_is_doomed(self, machine: Machine) -> None:
        """What is doomed will be lost; this machine's other directories lose nothing."""
        where, incarnation = self._beside_what_is_doomed(machine), self.incarnation(machine.broker_id)
        self.witness.excuses.taint(machine.broker_id, incarnation, where)

    def _beside_what_is_doomed(self, machine: Machine) -> set[TopicPartition]:
        """The replicas in the directories that an fsync or a write failed in."""
        paths, failed = machine.disk.directories, machine.disk.failed
        return {tp for tp in self.witness.truths if any(f"{one}/{tp}" in paths for one in failed)}

    def _without_a_log(self, machine: Machine) -> set[TopicPartition]:
        names = {path.rpartition("/")[2] for path in machine.disk.directories}
        return {tp for tp in self.witness.truths if str(tp) not in names}

    def incarnation(self, broker_id: BrokerId) -> int:
        stat = self.tree.exists(incarnation_path(broker_id))
        return -1 if stat is None else stat.version

    def marked_suspect(self, machine: Machine) -> set[str]:
        """The directories in which an fsync or a write failed, and of which ZooKeeper, or another directory
        of this broker's, knows that. (Marks of directories that are not here any more stay.)"""
        broker_id, directories = machine.broker_id, machine.disk.directories
        notes = [_text(names, SUSPECTS) for names in directories.values() if SUSPECTS in names]
        known = {one for note in notes for one in note.split()}
        if (reports := self.tree.get(suspects_path(broker_id))) is not None:
            known |= decode_suspects(broker_id, reports.data)
        if (node := self.tree.get(incarnation_path(broker_id))) is not None:
            stored = decode_incarnation(broker_id, node.data, node.stat.version, node.stat.mzxid)
            known |= set(stored.record.suspect)
        return {path for path in machine.disk.failed if _id_of(directories[path]) in known}

    def _is_delicate(self, broker_id: BrokerId) -> bool:
        """Whether replicas are about to be moved, or another machine has pages that will be lost."""
        return (
            bool(self.administrator.moves_pending)
            or self.witness.operations.may_move
            or any(
                machine.disk.failed or machine.disk.fading
                for machine in self.machines.values()
                if machine.broker_id != broker_id
            )
        )


def _text(names: Directory, name: str) -> str:
    return bytes(names[name].data).decode("ascii")


def _id_of(log_directory: Directory) -> str:
    """As its ``meta.properties`` says."""
    lines = _text(log_directory, IDENTITY).splitlines()
    return str(parse_uuid(dict(line.split("=", 1) for line in lines)["directory.id"]))
