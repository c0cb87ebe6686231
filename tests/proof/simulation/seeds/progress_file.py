"""What ``--resume`` keeps: which seeds of which code are done, and how much time was simulated.

A JSON document, written before the first seed, anew after every few seeds, and at the end. A file of other
code, of another Python, mutant or number of steps is refused: its seeds would stand for other runs. A commit
that changes no line of sparklog itself, a word of the documentation say, does not make a long run begin anew.

Refusals are ``ConfigError``: nothing was run. What a file says is believed only if this command can have
written it, since its sums are told as if they had been counted here (``progress_rules.py``).
"""

import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from simulation.seeds.fleet import Summary
from simulation.seeds.progress_rules import what_is_wrong, what_is_wrong_with_the_run
from sparklog.model.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Violated:
    """One seed that failed, and how."""

    seed: int
    invariant: str
    what: str


@dataclass(frozen=True, slots=True)
class Progress:
    """A long run so far. ``next_seed`` is the first that is not done."""

    commit: str
    """The one that began the run."""
    code: str
    """What all sources of sparklog came to then, see ``code_digest``."""
    first_seed: int
    last_seed: int
    next_seed: int
    mutant: str | None = None
    steps_max: int | None = None
    simulated_ms: int = 0
    steps: int = 0
    faults: int = 0
    acknowledged: int = 0
    seconds: float = 0.0
    """How long it took, all stretches together."""
    operations: int = 0
    spared: int = 0
    """Of the faults, how many did less than they are called, as more is not promised."""
    accepted: int = 0
    """Requests of administrators, and parts of them, that somebody did, or began."""
    marks: dict[str, int] = field(default_factory=dict)
    """How many seeds reached which situation."""
    violations: tuple[Violated, ...] = ()
    python: str | None = None
    """Which Python ran; None in a file that was begun before this was written down."""
    libraries: dict[str, str] = field(default_factory=dict)
    """Their versions; empty as ``python`` is None."""

    @property
    def seeds(self) -> int:
        """How many are done."""
        return self.next_seed - self.first_seed

    @property
    def seeds_wanted(self) -> int:
        return self.last_seed - self.first_seed + 1

    def after(self, summary: Summary, *, seconds: float) -> "Progress":
        """With one more seed. Whoever is interrupted has the state before it or behind it."""
        marks = {mark: self.marks.get(mark, 0) + 1 for mark in summary.marks}
        violations = self.violations
        if summary.invariant is not None:
            violations = (*violations, Violated(summary.seed, summary.invariant, summary.what))
        return replace(
            self,
            next_seed=summary.seed + 1,
            simulated_ms=self.simulated_ms + summary.simulated_ms,
            steps=self.steps + summary.steps,
            faults=self.faults + summary.faults,
            acknowledged=self.acknowledged + summary.acknowledged,
            operations=self.operations + summary.operations,
            spared=self.spared + summary.spared,
            accepted=self.accepted + summary.accepted,
            marks=self.marks | marks,
            violations=violations,
            seconds=seconds,
        )


NOBODY_WROTE_IT: Final = (
    "no run of `scripts/simulate --seeds A-B --resume FILE` wrote that file; give the file of such a "
    "run, or one that is not there yet"
)
ELSEWHERE: Final = "or begin anew with a file that is not there yet"


def load(path: Path, fresh: Progress) -> Progress:
    """Where the run in ``path`` stopped, ``fresh`` if there is none; ConfigError if it is another run."""
    text = _text_of(path)
    if text is None:
        return fresh
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError(f"--resume {path}: {NOBODY_WROTE_IT}") from None
    _refuse(path, what_is_wrong_with_the_run(document))
    _refuse_another_run(path, document, fresh)
    _refuse(path, what_is_wrong(document))
    known = Progress(
        **document | {"violations": tuple(Violated(**one) for one in document["violations"])},
    )
    _refuse_another_python(path, known, fresh)
    return known


def _text_of(path: Path) -> str | None:
    """None if there is no such file."""
    try:
        if path.exists() and not path.is_file():
            kind = "a directory" if path.is_dir() else "no plain file"
            raise ConfigError(f"--resume {path}: this is {kind}; give the name of a file")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ConfigError(f"--resume {path}: {NOBODY_WROTE_IT}") from None
    except OSError as error:
        raise ConfigError(
            f"--resume {path}: cannot be read ({error.strerror}); give a file that can be read and written"
        ) from None


def _refuse(path: Path, wrong: str | None) -> None:
    if wrong is not None:
        raise ConfigError(f"--resume {path}: {wrong}: {NOBODY_WROTE_IT}")


def _refuse_another_run(path: Path, document: dict[str, Any], fresh: Progress) -> None:
    was, now = document["first_seed"], document["last_seed"]
    if (was, now) != (fresh.first_seed, fresh.last_seed):
        raise ConfigError(
            f"--resume {path}: that file is of the seeds {was}-{now}, and this run has --seeds "
            f"{fresh.first_seed}-{fresh.last_seed}; give --seeds {was}-{now}, {ELSEWHERE}"
        )
    for option, name in (("--mutant", "mutant"), ("--steps", "steps_max")):
        before, here = (_as_option(option, one) for one in (document[name], getattr(fresh, name)))
        if before != here:
            raise ConfigError(
                f"--resume {path}: that file is of a run {before}, and this one is {here}; "
                f"give the same as before, {ELSEWHERE}"
            )
    if document["code"] != fresh.code:
        raise ConfigError(
            f"--resume {path}: that file is of other sources of sparklog than those here (digest "
            f"{document['code']}, begun at commit {document['commit']}; here {fresh.code}, commit "
            f"{fresh.commit}), so its seeds stand for other runs; go on at that commit, {ELSEWHERE}"
        )


def _as_option(option: str, value: object) -> str:
    return f"without {option}" if value is None else f"with {option} {value}"


def _refuse_another_python(path: Path, known: Progress, fresh: Progress) -> None:
    """Not where the file says nothing of it, as it was begun before this was written down."""
    if known.python is None or (known.python, known.libraries) == (fresh.python, fresh.libraries):
        return
    assert fresh.python is not None, "whoever begins a run knows which Python it is"
    was = _parts(known.python, known.libraries)
    now = _parts(fresh.python, fresh.libraries)
    rest = known.next_seed if known.next_seed <= known.last_seed else known.first_seed
    raise ConfigError(
        f"--resume {path}: its seeds ran with {', '.join(sorted(was - now))}, and here is "
        f"{', '.join(sorted(now - was)) or 'none of that'}, with which a seed may be another run; go on with "
        f"the same, or run --seeds {rest}-{known.last_seed} with a file that is not there yet"
    )


def _parts(python: str, libraries: dict[str, str]) -> set[str]:
    return {python, *(f"{name} {version}" for name, version in libraries.items())}


def claim(path: Path, progress: Progress) -> None:
    """Write the file before the first seed; ConfigError if that cannot be done, and nothing is run."""
    try:
        save(path, progress)
    except OSError as error:
        raise ConfigError(
            f"--resume {path}: cannot be written ({error.strerror}); give a file in a directory that is "
            "there and can be written"
        ) from None


def save(path: Path, progress: Progress) -> None:
    """Keep the state; whoever reads sees the old one or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:  # nothing to remove if that fails
        try:
            file.write(json.dumps(asdict(progress), indent=1) + "\n")
            file.flush()
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
