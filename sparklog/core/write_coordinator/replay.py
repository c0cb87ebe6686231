"""The records that a new coordinator has read in its log.

Compaction, and reads in pieces, change the order of an app's records. So heads and members are joined only
when all are read.

Elections may have lost the records of the last members. Their producer ids must not be given again, so each
leader epoch has numbers of its own in an open write (``model/write_ids.py``).
"""

from dataclasses import dataclass, field
from typing import Any

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.write_coordinator.app import App
from sparklog.core.write_coordinator.records import Head, HeadKey, Member, MemberKey
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.ids import LeaderEpoch
from sparklog.model.time import MonotonicMs
from sparklog.model.write_ids import first_number


@dataclass(slots=True)
class Replay:
    """The last record of each key."""

    heads: dict[str, Head] = field(default_factory=dict)
    members: dict[MemberKey, Member] = field(default_factory=dict)

    def take(self, record: StateRecord) -> None:
        is_head = isinstance(record.key, HeadKey)
        known: dict[Any, Any] = self.heads if is_head else self.members
        key = record.key.app if is_head else record.key
        if record.value is None:
            known.pop(key, None)
        else:
            known[key] = record.value

    def apps(self, now_ms: MonotonicMs, leader_epoch: LeaderEpoch) -> tuple[dict[str, App], list[MemberKey]]:
        """All apps, with signs of life as of now, and the members of writes that are over."""
        apps = {name: App(name, head) for name, head in self.heads.items()}
        orphans: list[MemberKey] = []
        for key in sorted(self.members, key=lambda key: key.member_number):
            app = apps.get(key.app)
            if app is None or app.head.state is AppState.IDLE or app.head.write_number != key.write_number:
                orphans.append(key)
            else:
                app.put(key.member_number, self.members[key], now_ms)
        for app in apps.values():
            app.last_sign_ms = now_ms
            if app.head.state is AppState.OPEN:
                app.next_number = first_number(app.next_number, app.head.opened_in, leader_epoch)
        return apps, orphans
