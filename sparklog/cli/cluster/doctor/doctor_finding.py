"""What the doctor says about one subject, as ``sparklog doctor --json`` has it. PURE."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NAMED_MAX: Final = 3


class Severity(StrEnum):
    """``ok``: examined, and well. ``note``: worth knowing, or not examined. ``warning``: safety or speed is
    less than it seems. ``grave``: something is refused, stands still or is about to be lost; the command ends
    with 1.
    """

    ok = "ok"
    note = "note"
    warning = "warning"
    grave = "grave"


WORST_FIRST: Final = (Severity.grave, Severity.warning, Severity.note, Severity.ok)


@dataclass(frozen=True, slots=True)
class Finding:
    """``value`` is what was seen, ``harm`` what it does, ``remedy`` what to do. Those that are ``ok`` have
    neither harm nor remedy.
    """

    check: str
    severity: Severity
    subject: str
    value: str
    harm: str = ""
    remedy: str = ""


def named(noun: str, names: Sequence[object]) -> str:
    """``topic a``, ``topics a, b``, ``topics a, b, c and 17 more``."""
    return f"{noun if len(names) == 1 else f'{noun}s'} {listed(names)}"


def listed(names: Sequence[object]) -> str:
    """``a, b, c and 17 more``: bounded, however many there are."""
    shown = ", ".join(map(str, names[:NAMED_MAX]))
    return f"{shown} and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else shown
