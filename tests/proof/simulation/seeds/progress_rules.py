"""What a document that ``--resume`` reads must be, so that a run can have written it.

Each function gives the first thing that is wrong, in words, or None. First comes what says which run it is,
so that a file of another run, or of an earlier commit, is told as that; then what came of the run.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from simulation.marks import ALL_MARKS

IDENTITY: Final = ("commit", "code", "first_seed", "last_seed", "mutant", "steps_max")
SUMS: Final = ("simulated_ms", "steps", "faults", "acknowledged", "operations", "spared", "accepted")
RESULTS: Final = ("next_seed", *SUMS, "seconds", "marks", "violations")
LATER: Final = ("python", "libraries")
"""Files that were begun before these were written down have neither."""

SHOWN: Final = 60
"""Characters of a wrong value in a message."""


def what_is_wrong_with_the_run(document: object) -> str | None:
    """What says which run it is."""
    if not isinstance(document, dict):
        return "it is no JSON object"
    missing = [name for name in IDENTITY if name not in document]
    if missing:
        return f'it has no "{missing[0]}"'
    for name in ("commit", "code"):
        if not _is_word(document[name]):
            return _wrong(document, name, "a word")
    if not _is_whole(document["first_seed"], 0):
        return _wrong(document, "first_seed", "a whole number from 0 on")
    if not _is_whole(document["last_seed"], document["first_seed"]):
        return _wrong(document, "last_seed", f"a whole number from {document['first_seed']} on")
    if document["mutant"] is not None and not _is_word(document["mutant"]):
        return _wrong(document, "mutant", "a name or null")
    if document["steps_max"] is not None and not _is_whole(document["steps_max"], 1):
        return _wrong(document, "steps_max", "a whole number from 1 on or null")
    return None


def what_is_wrong(document: Mapping[str, Any]) -> str | None:
    """The rest, where it is this run of this code."""
    missing = [name for name in RESULTS if name not in document]
    if missing:
        return f'it has no "{missing[0]}"'
    unknown = sorted(document.keys() - {*IDENTITY, *RESULTS, *LATER})
    if unknown:
        return f'it has a "{unknown[0]}", which no run writes'
    return (
        _wrong_counts(document)
        or _wrong_marks(document)
        or _wrong_violations(document)
        or _wrong_versions(document)
    )


def _wrong_counts(document: Mapping[str, Any]) -> str | None:
    first, last, next_seed = document["first_seed"], document["last_seed"], document["next_seed"]
    if not _is_whole(next_seed, first) or next_seed > last + 1:
        return _wrong(document, "next_seed", f"a whole number from {first} to {last + 1}")
    is_begun = next_seed > first
    for name in SUMS:
        if not _is_whole(document[name], 0):
            return _wrong(document, name, "a whole number from 0 on")
        if document[name] and not is_begun:
            return _wrong(document, name, "0, as none of its seeds is done")
    seconds = document["seconds"]
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds < math.inf:
        return _wrong(document, "seconds", "a number from 0 on")
    return None


def _wrong_marks(document: Mapping[str, Any]) -> str | None:
    marks, seeds = document["marks"], document["next_seed"] - document["first_seed"]
    if not isinstance(marks, dict):
        return _wrong(document, "marks", "an object")
    for mark, count in marks.items():
        if mark not in ALL_MARKS:
            return f'"marks" has {_short(mark)}, and there is no such mark'
        if not _is_whole(count, 1) or count > seeds:
            return (
                f'"marks" has {_short(count)} for {_short(mark)}, and must have 1 to {seeds}, the seeds done'
            )
    return None


def _wrong_violations(document: Mapping[str, Any]) -> str | None:
    violations = document["violations"]
    if not isinstance(violations, list):
        return _wrong(document, "violations", "a list")
    earliest, done = document["first_seed"], document["next_seed"]
    for one in violations:
        if not isinstance(one, dict) or one.keys() != {"seed", "invariant", "what"}:
            return f'"violations" has {_short(one)}, and must name "seed", "invariant" and "what"'
        if not _is_whole(one["seed"], earliest) or one["seed"] >= done:
            return (
                f'"violations" has the seed {_short(one["seed"])}, and must have seeds in their order, '
                f"from {document['first_seed']} on and below {done}, the first that is not done"
            )
        if not _is_word(one["invariant"]) or not isinstance(one["what"], str):
            return f'"violations" has {_short(one)}, and must say in words what was violated'
        earliest = one["seed"] + 1
    return None


def _wrong_versions(document: Mapping[str, Any]) -> str | None:
    if all(name not in document for name in LATER):
        return None
    missing = [name for name in LATER if name not in document]
    if missing:
        return f'it has no "{missing[0]}"'
    python, libraries = document["python"], document["libraries"]
    if python is not None and not _is_word(python):
        return _wrong(document, "python", "a version or null")
    is_versions = isinstance(libraries, dict) and all(_is_word(one) for one in libraries.values())
    if not is_versions or bool(libraries) != (python is not None):
        return _wrong(document, "libraries", "an object of versions, empty only where python is null")
    return None


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _wrong(document: Mapping[str, Any], name: str, expected: str) -> str:
    return f'"{name}" is {_short(document[name])}, and must be {expected}'


def _short(value: object) -> str:
    """As JSON has it, cut to what fits a line."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
