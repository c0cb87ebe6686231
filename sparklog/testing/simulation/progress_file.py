"""What ``--resume`` keeps: which seeds of which code are done, and how much time was simulated.

A JSON document, written anew after every few seeds and at the end. A file of other code, another mutant or
number of steps is refused: its seeds would stand for other runs. A commit that changes no line of sparklog
itself, a word of the documentation say, does not make a long run begin anew.
"""

import hashlib
import json
import os
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sparklog.model.errors import SparklogError


@dataclass(slots=True)
class Violated:
    """One seed that failed, and how."""

    seed: int
    invariant: str
    what: str


@dataclass(slots=True)
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
    marks: dict[str, int] = field(default_factory=dict)
    """How many seeds reached which situation."""
    violations: list[Violated] = field(default_factory=list)

    @property
    def seeds(self) -> int:
        return self.next_seed - self.first_seed


def current_commit() -> str:
    """The commit that runs here, with a mark if the tree differs from it; ``unknown`` outside a checkout."""
    here = Path(__file__).parent
    try:
        head = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--", "../..")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("-changed" if changed else "")


def code_digest() -> str:
    """16 hexadecimal digits of a hash over all sources of sparklog: equal where the same code runs."""
    root = Path(__file__).parents[2]
    found = hashlib.sha256()
    for source in sorted(root.rglob("*.py")):
        found.update(str(source.relative_to(root)).encode() + b"\0" + source.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def _git(where: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=where, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def load(path: Path, fresh: Progress) -> Progress:
    """Where the run in ``path`` stopped, ``fresh`` if there is none; SparklogError if it is another run."""
    if not path.exists():
        return fresh
    try:
        document = json.loads(path.read_text())
        violations = [Violated(**one) for one in document.pop("violations")]
        known = Progress(**document, violations=violations)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise SparklogError(
            f"--resume {path}: no run of `sparklog simulate --seeds A-B --resume FILE` wrote that file; give "
            "the file of such a run, or one that is not there yet"
        ) from None
    for name in ("code", "first_seed", "last_seed", "mutant", "steps_max"):
        was, now = getattr(known, name), getattr(fresh, name)
        if was != now:
            what = name.replace("_", " ")
            raise SparklogError(
                f"{path} is of a run with {what} {was}, this one has {now}: "
                "go on with the same, or remove the file to begin anew"
            )
    return known


def save(path: Path, progress: Progress) -> None:
    """Keep the state; whoever reads sees the old one or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(asdict(progress), indent=1) + "\n")
    os.replace(temporary, path)
