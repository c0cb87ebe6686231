"""Bugs of the order in which a broker starts and ends."""

from collections.abc import Callable
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.life.broker_life import BrokerLife, Failure
from sparklog.model.loops import Loop, Pause

LATE_MS: Final = 300
"""How long the wrong order of two steps lasts."""


def _marked_clean_while_it_serves(switch: Switch) -> None:
    """A clean stop marks the directories first, and only then ends the loops and the requests that append."""

    def take_leave(original: Any) -> Any:
        def mutated(self: BrokerLife) -> Loop:
            if self.failure is None and self._log_dirs is not None and self.body is not None:
                for partition in self.body.replicas.partitions():
                    partition.log_guard.flush()
                for directory in self._log_dirs._directories:
                    directory.mark_clean(self.broker_epoch)
                yield Pause(LATE_MS)
            yield from original(self)

        return mutated

    switch.method(BrokerLife, "_take_leave", take_leave)


def _registers_before_recovery_is_over(switch: Switch) -> None:
    """A broker is there for its controller before it knows its logs: their recovery is left to a loop."""
    late: dict[LogDirs, Callable[[], None]] = {}

    def load(original: Any) -> Any:
        def mutated(self: LogDirs, *arguments: Any) -> None:
            late[self] = lambda: original(self, *arguments)

        return mutated

    def register(original: Any) -> Any:
        def mutated(self: BrokerLife) -> None:
            original(self)
            assert self._log_dirs is not None
            recover = late.pop(self._log_dirs)

            def recover_late() -> Loop:
                yield Pause(LATE_MS)
                assert self.body is not None
                recover()
                self.body.parts.logs.load()

            self._ports.zookeeper_loops.start("late-recovery", recover_late)

        return mutated

    switch.method(LogDirs, "load", load)
    switch.method(BrokerLife, "_register", register)


def _session_ends_before_the_report(switch: Switch) -> None:
    """A broker whose last disk failed leaves ZooKeeper first: its report finds no session."""

    def give_up(original: Any) -> Any:
        def mutated(self: BrokerLife, failure: Failure) -> Loop:
            assert self.body is not None
            self.body.context.roles.stop_serving(failure.why)
            self._ports.end_session()
            yield Pause(1)

        return mutated

    switch.method(BrokerLife, "_give_up", give_up)


LIFE: Final[tuple[Mutant, ...]] = (
    Mutant(
        "marked-clean-while-it-serves",
        "a stop in the wrong order",
        "a power cut after the mark takes records, and the replica counts as whole",
        30,
        _marked_clean_while_it_serves,
        Hunt(kinds=("stop broker", "cut all power"), settings={"min.insync.replicas": "2"}),
    ),
    Mutant(
        "registers-before-recovery-is-over",
        "a start in the wrong order",
        "a broker takes up roles for logs that it does not know yet",
        10,
        _registers_before_recovery_is_over,
        Hunt(kinds=("kill broker",)),
        is_quick=True,
    ),
    Mutant(
        "session-ends-before-the-report",
        "a stop in the wrong order",
        "a start trusts a disk of which an fsync failed, and the log has holes",
        30,
        _session_ends_before_the_report,
        Hunt(kinds=("fail an fsync", "kill broker"), settings={"min.insync.replicas": "2"}),
    ),
)
