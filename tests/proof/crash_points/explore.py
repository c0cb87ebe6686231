"""Every point of a scenario: recorded once, then ended there by SIGKILL, and by power cuts in many ways."""

import hashlib
import os
import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path, PurePosixPath

from crash_points import tracer
from crash_points.bench import Bench
from crash_points.calls import Change, change_of
from crash_points.disk_states import ByteChange, Machine, Tree, changed, read_tree, write_tree
from crash_points.judge import judge
from crash_points.promises import Promises
from crash_points.scenarios import Scenario
from crash_points.tracer import SystemCall

AFTER_CUT, AFTER_SECOND_CUT = "after the cut", "after the second cut"
"""Boots."""


@dataclass(frozen=True)
class Point:
    """The moment before a change; ``change`` None is the end of the scenario."""

    number: int
    change: Change | None
    promises: Promises
    tree: Tree
    """What is in the directory at that moment."""


@dataclass
class Recording:
    """A scenario as it ran undisturbed."""

    base: Tree
    points: list[Point]


@dataclass(frozen=True)
class Remains:
    """What a crash left, for recoveries that are interrupted; ``boot_id`` is that of the next start."""

    where: str
    tree: Tree
    promises: Promises
    boot_id: str
    power_cut: bool


@dataclass
class Row:
    """A row of the table: one operation."""

    points: int = 0
    """Before each call, and at the end of the scenario."""
    kills: int = 0
    real_kills: int = 0
    """Of ``kills`` and ``kills_in_recovery``."""
    torn: int = 0
    states: int = 0
    kills_in_recovery: int = 0
    states_in_recovery: int = 0

    def add(self, other: "Row") -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass
class Report:
    rows: dict[str, Row] = field(default_factory=lambda: defaultdict(Row))
    troubles: list[str] = field(default_factory=list)

    def note(self, where: str, troubles: Iterable[str]) -> bool:
        found = [f"{where}: {trouble}" for trouble in troubles]
        self.troubles += found
        return not found


@dataclass(frozen=True)
class Effort:
    """How much of everything there is to be tried."""

    every: int = 1
    """Only every so many points, from the one with number ``first`` on, which is less."""
    first: int = 0
    drawn: int = 12
    """States after a power cut that are drawn, beside those by rule."""
    states_max: int = 60
    """States of one point at most, chosen by chance: the neighbouring points have most of the others."""
    really_every: int = 1
    """At every so many points a child is really killed; at the others its files are as they were seen there
    while it stood still, which is the same."""
    torn: bool = True
    in_recovery: bool = True
    recoveries_max: int = 200
    """Recoveries of one scenario that are themselves interrupted, those that do different things first."""


class Explorer:
    """Explores scenarios in a folder of its own; ``close`` removes it."""

    def __init__(self, report: Report, effort: Effort) -> None:
        self.report = report
        self.effort = effort
        memory = Path("/dev/shm")
        place = memory if os.access(memory, os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="crash-points-", dir=place)).resolve()
        self._runs = 0
        self._marks = os.open(os.devnull, os.O_WRONLY)
        self._judged: set[bytes] = set()

    def close(self) -> None:
        os.close(self._marks)
        shutil.rmtree(self._folder)

    def explore(self, scenario: Scenario) -> None:
        self._child(scenario, self._fresh())()  # what is imported on the way is imported for all
        recording = self.record(scenario)
        chosen = [
            point for point in recording.points if point.number % self.effort.every == self.effort.first
        ]
        trees: list[Remains] = []
        for point in chosen:
            self.report.rows[point.promises.operation].points += 1
            trees += self._kill(scenario, recording, point)
        trees += self._cut_power(scenario.name, recording, {point.number for point in chosen})
        if self.effort.in_recovery:
            self._interrupt_recoveries(trees)

    # ---- one scenario --------------------------------------------------------------------------------------

    def record(self, scenario: Scenario) -> Recording:
        """Run it to its end, and note every change and promise."""
        return self._record(lambda root: self._child(scenario, root), Promises())

    def _record(
        self, child: "Callable[[Path], Callable[[], None]]", promises: Promises, base: Tree | None = None
    ) -> Recording:
        root = self._fresh()
        write_tree(root, base or {})
        points: list[Point] = []
        found: list[Tree] = [] if base is None else [base]

        def on_call(call: SystemCall) -> bool:
            nonlocal promises
            if self._is_mark(call):
                if not found:
                    found.append(read_tree(root))
                promises = deepcopy(promises)
                promises.hear(call.memory(call.arguments[1], call.arguments[2]).decode())
            elif found and (change := change_of(call, str(root))):
                points.append(Point(len(points), change, promises, read_tree(root)))
            return False

        tracer.run(child(root), on_call)
        points.append(Point(len(points), None, promises, read_tree(root)))
        recording = Recording(found[0], points)
        shutil.rmtree(root)
        return recording

    def _child(self, scenario: Scenario, root: Path) -> Callable[[], None]:
        def live() -> None:
            bench = Bench(str(root), self._marks)
            scenario.prepare(bench)
            bench.begin()
            scenario.act(bench)

        return live

    def _is_mark(self, call: SystemCall) -> bool:
        return call.name == "write" and call.arguments[0] == self._marks

    def _fresh(self) -> Path:
        self._runs += 1
        return self._folder / f"{self._runs:08d}"

    # ---- SIGKILL -------------------------------------------------------------------------------------------

    def run_on(
        self,
        root: Path,
        scenario: Scenario,
        recording: Recording,
        number: int,
        on_begin: Callable[[], None],
        on_end: Callable[[], None],
    ) -> list[Change]:
        """Run it in ``root``, which is empty, up to that point, and end it there. Returns what it did: names
        of one directory may go in another order than in the recording, as file systems list them in their
        own."""
        return self._run_until(
            self._child(scenario, root),
            root,
            recording.points,
            number,
            has_marks=True,
            on_begin=on_begin,
            on_end=on_end,
        )

    def _kill(self, scenario: Scenario, recording: Recording, point: Point) -> list[Remains]:
        """What SIGKILL leaves there, and in the middle of a write. Where ``really_every`` says so, a child is
        really killed, and must leave what the recording found at that moment."""
        if point.change is None:
            return []
        row = self.report.rows[point.promises.operation]
        if point.number % self.effort.really_every == 0:
            row.real_kills += 1
            root = self._fresh()
            root.mkdir()
            self._run_until(self._child(scenario, root), root, recording.points, point.number, has_marks=True)
            left = read_tree(root)
            assert _same(left, point.tree), f"killed before {point.change}: not what was seen there"
            shutil.rmtree(root)
        where = f"{scenario.name} / {point.promises.operation}, SIGKILL before call {point.number}"
        where += f" ({point.change})"
        trees = [(where, point.tree)]
        trees += [
            (f"{where} after {part} bytes of it", _partly(point.tree, point.change, part))
            for part in (self._parts(point.change) if self.effort.torn else ())
        ]
        row.kills += 1
        row.torn += len(trees) - 1
        remains = []
        for name, tree in trees:
            one = Remains(name, tree, point.promises, scenario.boot_id, power_cut=False)
            self.report.note(name, self._judge_tree(one))
            remains.append(one)
        return remains

    def _parts(self, change: Change) -> list[int]:
        """Lengths at which a write is ended in its middle."""
        size = len(change.data)
        if change.kind != "write" or size < 2:
            return []
        return sorted({1, size // 2, size - 1, *range(4_096 - change.position % 4_096, size, 4_096)})

    def _run_until(
        self,
        child: Callable[[], None],
        root: Path,
        points: list[Point],
        number: int,
        *,
        has_marks: bool = False,
        on_begin: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
    ) -> list[Change]:
        """Run again, and end it before that change; ``on_begin`` and ``on_end`` while it stands still."""
        done: list[Change] = []
        is_watching = not has_marks

        def on_call(call: SystemCall) -> bool:
            nonlocal is_watching
            if self._is_mark(call):
                if not is_watching:
                    on_begin()
                is_watching = True
                return False
            change = change_of(call, str(root)) if is_watching else None
            if change is None:
                return False
            expected = points[len(done)].change
            assert expected is not None
            assert is_alike(change, expected), f"this run does {change}, the recorded one did {expected}"
            if len(done) < number:
                done.append(change)
                return False
            on_end()
            return True

        assert not tracer.run(child, on_call), f"the child came to its end before call {number}"
        return done

    # ---- power cuts ----------------------------------------------------------------------------------------

    def _cut_power(self, name: str, recording: Recording, chosen: set[int]) -> list[Remains]:
        remains = []
        for point, states in self._states(name, recording, chosen):
            where = (
                f"{name} / {point.promises.operation}, power cut before call {point.number} ({point.change})"
            )
            row = self.report.rows[point.promises.operation]
            row.states += self._judge_states(where, states, point.promises, AFTER_CUT)
            remains += [
                Remains(where, state, point.promises, AFTER_CUT, power_cut=True) for state in states[:2]
            ]
        return remains

    def _judge_states(self, where: str, states: list[Tree], promises: Promises, boot_id: str) -> int:
        """Judge those that were not judged before; how many."""
        legal = repr((promises.after_power_cut, promises.may_be_clean))
        count = 0
        for number, state in enumerate(states):
            key = hashlib.blake2b(repr((state, legal)).encode(), digest_size=16).digest()
            if key not in self._judged:
                self._judged.add(key)
                one = Remains(f"{where}, state {number}", state, promises, boot_id, power_cut=True)
                self.report.note(one.where, self._judge_tree(one))
                count += 1
        return count

    def _states(
        self, name: str, recording: Recording, chosen: set[int]
    ) -> Iterator[tuple[Point, list[Tree]]]:
        machine = Machine.of(recording.base)
        for point in recording.points:
            if point.number in chosen or point.change is None:
                draw = random.Random(f"{name}/{point.number}")
                states = list(machine.states_after_power_cut(draw, self.effort.drawn))
                if len(states) > self.effort.states_max:
                    states = [*states[:2], *draw.sample(states[2:], self.effort.states_max - 2)]
                yield point, states
            told = machine.tree()
            assert _same(told, point.tree), f"what was recorded does not make what is there at {point.number}"
            if point.change is not None:
                machine.apply(point.change)

    def _judge_tree(self, one: Remains) -> list[str]:
        root = self._fresh()
        write_tree(root, one.tree)
        troubles = judge(
            root, one.promises, one.boot_id, power_cut=one.power_cut, goes_on=self._runs % 4 == 0
        )
        shutil.rmtree(root)
        return troubles

    # ---- recovery, interrupted -----------------------------------------------------------------------------

    def _interrupt_recoveries(self, remains: Iterable[Remains]) -> None:
        """End each recovery at each of its own calls, by SIGKILL and by a power cut; the next one completes.

        Of recoveries that make the same calls one is taken.
        """
        ways: set[tuple[object, ...]] = set()
        every = list(remains)
        kills = [one for one in every if not one.power_cut]
        cuts = [one for one in every if one.power_cut]
        for one in (one for pair in zip_longest(cuts, kills) for one in pair if one is not None):
            if len(ways) >= self.effort.recoveries_max:
                return
            recording = self._record(partial(self._recovery, one), one.promises, base=one.tree)
            way = (
                one.promises.operation,
                one.power_cut,
                *(point.change and point.change.what for point in recording.points),
            )
            if way not in ways:
                ways.add(way)
                self._interrupt(one, recording)

    def _recovery(self, remains: Remains, root: Path) -> Callable[[], None]:
        return lambda: Bench(str(root)).start(remains.boot_id)

    def _interrupt(self, one: Remains, recording: Recording) -> None:
        row = self.report.rows[one.promises.operation]
        for point in recording.points[:-1]:
            if point.number % self.effort.really_every == 1 % self.effort.really_every:
                row.real_kills += 1
                root = self._fresh()
                write_tree(root, one.tree)
                self._run_until(self._recovery(one, root), root, recording.points, point.number)
                assert _same(read_tree(root), point.tree), f"recovery killed before {point.change}"
                shutil.rmtree(root)
            where = f"{one.where}; recovery, SIGKILL before its call {point.number} ({point.change})"
            self.report.note(where, self._judge_tree(replace(one, where=where, tree=point.tree)))
            row.kills_in_recovery += 1
        if not one.power_cut:
            return
        for point, states in self._states(one.where, recording, {point.number for point in recording.points}):
            where = f"{one.where}; recovery, power cut before its call {point.number} ({point.change})"
            row.states_in_recovery += self._judge_states(where, states, point.promises, AFTER_SECOND_CUT)


def _same(one: Tree, other: Tree) -> bool:
    """Equal but for the process id in the lock."""
    return {**one, ".lock": b""} == {**other, ".lock": b""}


def _partly(tree: Tree, change: Change, part: int) -> Tree:
    """When ``part`` bytes of a write were done."""
    content = tree[change.path]
    assert content is not None
    return {**tree, change.path: changed(content, ByteChange(0, 0, change.position, change.data[:part]))}


def is_alike(change: Change, recorded: Change) -> bool:
    """Whether two runs of one scenario did the same there. (A directory that is removed with all that is in
    it loses its names in the order in which its file system lists them.)"""
    if change.kind == recorded.kind == "unlink":
        return PurePosixPath(change.path).parent == PurePosixPath(recorded.path).parent
    return change.what == recorded.what
