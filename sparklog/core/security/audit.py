"""The audit: a line of JSON for each denial and for each act of administration.

    {"time_ms": 1764430387123, "server": "broker-1", "event": "denial", "principal": "User:bob",
     "client_host": "10.0.0.9", "api": "Produce", "operation": "WRITE", "resource_type": "TOPIC",
     "resource_name": "sales-orders"}
    {"time_ms": 1764430391456, "server": "controller", "event": "act", "principal": "User:alice",
     "client_host": "10.0.0.8", "client_id": "sparklog-cli", "api": "CreateTopics",
     "subjects": ["sales-orders"], "more_subjects": 0, "errors": []}

What a list leaves out is no denial. Names come from clients: they are cut where they are long, and JSON's
escapes leave ASCII alone, so that no name begins a line, moves a cursor or reorders what one reads.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.requester import Requester
from sparklog.model.errors import ErrorCode
from sparklog.model.time import Clock

NAME_CHARACTERS_MAX: Final = 400
SUBJECTS_MAX: Final = 100
"""Subjects that a line names; the others are counted."""


@dataclass(frozen=True, slots=True)
class Act:
    """What a request changes: subjects in words, and how many more there are."""

    subjects: tuple[str, ...]
    more: int

    @classmethod
    def on(cls, subjects: Iterable[str]) -> "Act":
        left = iter(subjects)
        named = tuple(_cut(one) for one in islice(left, SUBJECTS_MAX))
        return cls(named, sum(1 for _ in left))


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of one server. For any thread, as ``write`` is, which takes a line without its end and never
    waits.
    """

    server: str
    clock: Clock
    write: Callable[[str], None]

    def denied(
        self, requester: Requester, api: str, operation: AclOperation, resource: ResourceType, name: str
    ) -> None:
        """``requester`` lacks a right that its request needs."""
        what = {"operation": operation.name.upper(), "resource_type": resource.name.upper()}
        self._write("denial", requester, {"api": api, **what, "resource_name": _cut(name)})

    def acted(
        self,
        requester: Requester,
        client_id: str,
        api: str,
        act: Act,
        errors: Iterable[ErrorCode],
    ) -> None:
        """A request that changes the cluster was answered; ``errors`` are those of its answer."""
        asked = {"client_id": _cut(client_id), "api": api}
        changed = {"subjects": act.subjects, "more_subjects": act.more}
        codes = sorted({error.name.upper() for error in errors})
        self._write("act", requester, {**asked, **changed, "errors": codes})

    def _write(self, event: str, requester: Requester, more: dict[str, object]) -> None:
        line = {
            "time_ms": self.clock.wall_ms(),
            "server": self.server,
            "event": event,
            "principal": requester.principal,
            "client_host": requester.client_host,
            **more,
        }
        self.write(json.dumps(line))


def _cut(text: str) -> str:
    return text if len(text) <= NAME_CHARACTERS_MAX else f"{text[:NAME_CHARACTERS_MAX]}…"
