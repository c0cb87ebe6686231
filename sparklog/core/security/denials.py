"""Denials as lines of a log: each is reported once a second, with how often it happened since."""

from dataclasses import dataclass, field
from typing import Final

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.requester import Requester

QUIET_MS: Final = 1_000
"""Between two lines about the same denial."""

KINDS_MAX: Final = 1_000
"""Denials that are counted apart; a requester may name any resource. More of them are one kind."""

NAME_CHARACTERS_MAX: Final = 120

_OTHERS: Final = ("", 0, 0, "")

Kind = tuple[str, int, int, str]


@dataclass(slots=True)
class _Line:
    at_ms: int
    unreported: int = 0


@dataclass(slots=True)
class Denials:
    """Not safe for threads."""

    _lines: dict[Kind, _Line] = field(default_factory=dict)

    def on_denial(
        self,
        requester: Requester,
        operation: AclOperation,
        resource: ResourceType,
        name: str,
        now_ms: int,
    ) -> str | None:
        """The line to write now, None if the same was reported less than a second ago."""
        kind: Kind = (requester.principal, operation, resource, name)
        if kind not in self._lines and len(self._lines) >= KINDS_MAX:
            self._forget(now_ms)
            if len(self._lines) >= KINDS_MAX:
                kind = _OTHERS
        last = self._lines.get(kind)
        if last is not None and now_ms - last.at_ms < QUIET_MS:
            last.unreported += 1
            return None
        missed = last.unreported if last is not None else 0
        self._lines[kind] = _Line(now_ms)
        times = f" ({missed + 1} times since the last line)" if missed else ""
        shown = repr(name[:NAME_CHARACTERS_MAX])
        return f"{requester} is denied {operation.name.upper()} on {resource.name.upper()} {shown}{times}"

    def _forget(self, now_ms: int) -> None:
        old = [kind for kind, last in self._lines.items() if now_ms - last.at_ms >= QUIET_MS]
        for kind in old:
            del self._lines[kind]
