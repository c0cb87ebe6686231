"""What faults do to disks, within the fault atlas."""

import errno
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from simulation.cluster import Cluster
from simulation.disks.disk import Step, Trouble
from simulation.machines.broker import Machine
from simulation.plans.faults import Fault, Kind
from simulation.schedule import US_PER_MS, ProcessDied, dice
from simulation.strikes.atlas import Atlas
from simulation.strikes.downtime import Downtime
from sparklog.model.ids import BrokerId
from sparklog.storage.small_files.clean_stop import CLEAN_MARKER
from sparklog.storage.small_files.meta_properties import FILE as IDENTITY

DOOMED_MS_MAX: Final = 3_000
"""How long after a broker's start a page may still be read that an fsync should have saved."""

FAILING_STEPS: Final[dict[Kind, Step]] = {"fail an fsync": "fsync", "fail a checkpoint": "checkpoint"}


class DiskStrikes:
    """One method for each kind of trouble; ``by_kind`` names them."""

    def __init__(self, cluster: Cluster, downtime: Downtime, atlas: Atlas) -> None:
        self._cluster = cluster
        self._downtime = downtime
        self._atlas = atlas
        self.by_kind: dict[Kind, Callable[[Fault], None]] = {
            "kill broker in a write": self._kill_in_a_write,
            "cut the power": self._cut_power,
            "cut all power": self._cut_all_power,
            "fail a write": self._fail_disk,
            "fail an fsync": self._fail_disk,
            "fail a checkpoint": self._fail_disk,
            "fill the disk": self._fill_disk,
            "rot a log": self._rot_log,
            "rot what derives": self._rot_derived,
            "rot a batch": self._rot_batch,
            "slow the disk": self._slow_down,
            "wipe the disk": self._wipe,
            "empty a disk": self._empty,
            "reboot": self._reboot,
        }

    def mend(self) -> None:
        for machine in self._cluster.machines.values():
            machine.disk.trouble = None
            machine.disk.is_full = machine.disk.looks_full = 0
            machine.disk.slow_ms = 0.0
            if machine.disk.scrub():
                self._cluster.witness.marks.reach("a rotten batch was found and fetched again")

    # ---- power ---------------------------------------------------------------------------------------------

    def _cut_power(self, fault: Fault) -> None:
        machine = self._cluster.machines[fault.target]
        is_allowed = self._atlas.may_lose(machine.broker_id)
        self._downtime.take_down(fault, is_reported=False)
        if not is_allowed:
            self._atlas.spare(fault)
            return
        self._cluster.story.tell(fault.target, "loses power: what was not synced may be gone")
        self._atlas.taint(machine.broker_id)
        self._lose_what_was_not_synced(machine, dice(self._cluster.plan.seed, f"power cut {fault.number}"))

    def _cut_all_power(self, fault: Fault) -> None:
        """Everywhere; each machine is back in its own time. More than replication promises to survive."""
        draw = dice(self._cluster.plan.seed, f"blackout {fault.number}")
        for host, machine in self._cluster.machines.items():
            self._atlas.taint(machine.broker_id)
            duration_ms = int(fault.duration_ms * draw.uniform(0.3, 1))
            self._downtime.take_down(replace(fault, target=host, duration_ms=duration_ms), is_reported=False)
            self._lose_what_was_not_synced(machine, draw)

    def _lose_what_was_not_synced(self, machine: Machine, draw: random.Random) -> None:
        witness = self._cluster.witness
        witness.excuses.expect_what_was_synced(machine.broker_id)
        machine.boots += 1
        left = machine.disk.cut_power(draw)
        if left.has_gap:
            witness.marks.reach("a power cut left a gap in a log")
        if left.has_other_names:
            witness.marks.reach("a power cut undid changes of names")

    def _reboot(self, fault: Fault) -> None:
        """An orderly restart of the machine: everything is written, and the boot id is another. A broker that
        stopped cleanly proves its logs over it, one that was killed does not (``amount``)."""
        host, machine = fault.target, self._cluster.machines[fault.target]
        if not self._cluster.is_up(host):
            return
        is_killed = bool(fault.amount)
        if not is_killed:
            self._cluster.brokers[host].shut_down()
        elif self._atlas.may_lose(machine.broker_id):
            self._atlas.taint(machine.broker_id)
            self._cluster.kill(host, is_reported=True)
        else:
            self._atlas.spare(fault)
            return

        def boot() -> None:
            is_clean = machine.disk.holds_everywhere(CLEAN_MARKER, beside=IDENTITY)
            if not self._cluster.is_up(host) and (is_killed or is_clean):
                machine.disk.sync_all()
                machine.boots += 1
                if is_clean:
                    self._cluster.witness.marks.reach("a machine was rebooted after a clean stop")

        self._downtime.hold_down(fault, before=boot)

    def _wipe(self, fault: Fault) -> None:
        """The broker is launched anew under its id, on an empty disk: after a failure, or (``amount``) on
        another machine."""
        machine = self._cluster.machines[fault.target]
        is_allowed = self._atlas.may_lose(machine.broker_id)
        self._downtime.take_down(fault, is_reported=True)
        if is_allowed:
            self._lose_disk(fault, machine)
        else:
            self._atlas.spare(fault)

    def _empty(self, fault: Fault) -> None:
        """The same, whatever others have: more than replication promises to survive."""
        self._downtime.take_down(fault, is_reported=True)
        self._lose_disk(fault, self._cluster.machines[fault.target])

    def _lose_disk(self, fault: Fault, machine: Machine) -> None:
        self._cluster.story.tell(fault.target, "comes back with an empty disk")
        self._atlas.lose_disk(machine.broker_id)
        self._cluster.witness.marks.reach("a broker came back with an empty disk")
        machine.disk.wipe()
        machine.boots += int(fault.amount)

    # ---- writes --------------------------------------------------------------------------------------------

    def _kill_in_a_write(self, fault: Fault) -> None:
        disk = self._cluster.machines[fault.target].disk

        def strike() -> None:
            self._cluster.story.tell(fault.target, "dies in the middle of a write")
            self._downtime.take_down(fault, is_reported=True)
            raise ProcessDied(fault.target)

        keeps = dice(self._cluster.plan.seed, f"torn write {fault.number}").random()
        disk.trouble = Trouble(
            int(fault.amount),
            strike,
            keeps,
            # not that of a second launch, which has the disk for a moment and dies by itself
            counts=lambda process: process is self._cluster.process(fault.target),
        )

    def _fail_disk(self, fault: Fault) -> None:
        machine = self._cluster.machines[fault.target]

        def strike() -> None:
            # What the device failed costs the replicas there their proof; a write that is refused does not.
            if self._atlas.others_have_all(machine.broker_id):
                self._cluster.story.tell(fault.target, "meets an error of its disk")
                raise OSError(errno.EIO, "input/output error")
            self._atlas.spare(fault)
            if fault.kind == "fail a write":
                self._cluster.story.tell(fault.target, "is refused a write")
                raise OSError(errno.EDQUOT, "quota exceeded")

        keeps = dice(self._cluster.plan.seed, f"failed write {fault.number}").random()
        step = FAILING_STEPS.get(fault.kind, "write")
        machine.disk.trouble = Trouble(int(fault.amount), strike, keeps, step)

    def settle_doomed(self, host: str, launches: int) -> None:
        """Before a broker starts: what a failed fsync or write should have saved is gone, if replication
        covers it and ZooKeeper knows of it, or the broker went on serving. (A process that stops serving, and
        ends before it could tell, is beyond what is promised.)"""
        machine = self._cluster.machines[host]
        if not machine.disk.failed:
            return
        self._atlas.distrust_what_is_doomed(machine)
        is_covered = self._atlas.others_have_all(machine.broker_id)
        before = self._cluster.brokers.get(host)
        went_on = before is not None and before.has_registered and not before.has_failed
        went_on |= before is not None and before.has_told
        told = set(machine.disk.failed) if went_on else self._atlas.marked_suspect(machine)
        machine.disk.forgive(but_for=told if is_covered else ())
        if not machine.disk.failed:
            return
        draw = dice(self._cluster.plan.seed, f"failed fsync {host} {launches}")
        self._atlas.taint_what_is_doomed(machine)
        self._cluster.witness.excuses.has_damage = True
        machine.disk.let_doomed_fade()

        def lose() -> None:
            self._cluster.story.tell(host, "has lost what an fsync or a write should have saved")
            machine.disk.lose_fading(draw)

        if draw.random() < 0.5:
            lose()
        else:  # its memory is not short yet
            delay_us = int(draw.uniform(50, DOOMED_MS_MAX) * US_PER_MS)
            self._cluster.schedule.after(delay_us, None, lose)

    def _slow_down(self, fault: Fault) -> None:
        disk = self._cluster.machines[fault.target].disk
        disk.slowness = dice(self._cluster.plan.seed, f"slow disk {fault.number}")
        disk.slow_ms += fault.amount

        def hurry() -> None:
            disk.slow_ms = max(0.0, disk.slow_ms - fault.amount)

        self._downtime.at_end(fault, hurry)

    def _fill_disk(self, fault: Fault) -> None:
        disk = self._cluster.machines[fault.target].disk
        looks_full = dice(self._cluster.plan.seed, f"full disk {fault.number}").randrange(2)
        disk.is_full += 1
        disk.looks_full += looks_full

        def make_room() -> None:
            disk.is_full = max(0, disk.is_full - 1)
            disk.looks_full = max(0, disk.looks_full - looks_full)

        self._downtime.at_end(fault, make_room)

    # ---- rot -----------------------------------------------------------------------------------------------

    def _rot_log(self, fault: Fault) -> None:
        """While the broker is down; its next start finds it. One after a clean stop looks at nothing, and a
        broker that is about to start may not have taken the mark of that yet."""
        machine, was_up = self._cluster.machines[fault.target], self._cluster.is_up(fault.target)
        is_clean = any(CLEAN_MARKER in names for names in machine.disk.directories.values())
        self._downtime.take_down(fault, is_reported=True)
        if was_up and not is_clean and self._atlas.may_lose(machine.broker_id):
            self._atlas.taint(machine.broker_id)
            self._cluster.witness.excuses.expect_nothing(machine.broker_id)
            self._rot(fault, logs=True)
        else:
            self._atlas.spare(fault)

    def _rot_batch(self, fault: Fault) -> None:
        """While the broker runs: any batch, or (``amount``) the last of a log that it leads, or somebody.
        Whoever fetches it finds it, a lagging follower or a consumer."""
        machine = self._cluster.machines[fault.target]
        truths = [truth for truth in self._cluster.witness.truths.values() if not truth.is_thinned]
        if fault.amount and truths:
            led = [truth for truth in truths if truth.is_led_by(machine.broker_id)] or truths
            leader = led[0].state.leader if led[0].state is not None else machine.broker_id
            machine = next(
                (one for one in self._cluster.machines.values() if one.broker_id == leader), machine
            )
            truths = led[:1]
        if not self._atlas.may_lose(machine.broker_id) or not self._others_run(machine.broker_id):
            self._atlas.spare(fault)
            return
        process = self._cluster.process(machine.host)
        if process is not None and process.is_waiting:
            return  # perhaps in the middle of writing that very batch, which nobody has looked at yet
        logs = {str(truth.topic_partition) for truth in truths}
        draw = dice(self._cluster.plan.seed, f"rot {fault.number}")
        rot = machine.disk.rot_batch(draw, logs, is_last=bool(fault.amount))
        if rot is not None:
            self._atlas.taint(machine.broker_id)
            self._cluster.witness.excuses.has_damage = True
            self._cluster.witness.marks.reach("a batch rotted under its broker")
            self._cluster.story.tell(machine.host, f"rots: {rot.path} at {rot.position}")

    def _others_run(self, broker_id: BrokerId) -> bool:
        """Whether in each ISR somebody else runs who can lead: a leader whose members are all dead, and whose
        uncommitted end is damaged, needs an operator."""
        running = {
            machine.broker_id for host, machine in self._cluster.machines.items() if self._cluster.is_up(host)
        }
        return all(
            truth.state is None or not running.isdisjoint(set(truth.state.isr) - {broker_id})
            for truth in self._cluster.witness.truths.values()
        )

    def _rot_derived(self, fault: Fault) -> None:
        self._rot(fault, logs=False)

    def _rot(self, fault: Fault, *, logs: bool) -> None:
        disk = self._cluster.machines[fault.target].disk
        where = disk.rot(dice(self._cluster.plan.seed, f"rot {fault.number}"), logs=logs)
        self._cluster.story.tell(fault.target, f"rots: {where}")
