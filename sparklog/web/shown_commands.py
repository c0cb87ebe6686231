"""The commands that views name, each one that runs as it is copied.

PURE. Most show on a terminal what the view shows. One that would change something says so in its words; that
for a group's offsets is a dry run.
"""

import shlex
from typing import Final

from sparklog.web.verdict import WANTED_AWAY
from sparklog.wire.messages.discovery.cluster_report import ReportedBroker

ON_A_TERMINAL: Final = "On a terminal"
Shown = dict[str, str]
"""``does``: what the command is for; ``command``: its text."""


def shown(options: str, action: str, *, does: str = ON_A_TERMINAL, name: str = "", rest: str = "") -> Shown:
    """``sparklog ACTION NAME REST OPTIONS``; ``name`` is of any characters."""
    quoted = shlex.quote(name) if name else ""
    is_like_option = name.startswith("-")
    words = (action, "" if is_like_option else quoted, rest, options)
    last = ("--", quoted) if is_like_option else ()
    return {"does": does, "command": " ".join(("sparklog", *filter(None, words), *last))}


def of_broker(options: str, broker: ReportedBroker) -> Shown:
    """What starts it if it is away as somebody wished, else what restarts it."""
    verb = "start" if broker.wish in WANTED_AWAY else "restart"
    return shown(options, f"brokers {verb} {broker.broker_id}", does=f"To {verb} it")


def of_group(options: str, group_id: str, *, is_query: bool) -> Shown:
    """A query goes on where its checkpoint says, whatever its group has committed."""
    if is_query:
        return shown(options, "groups describe", name=group_id)
    return shown(
        options,
        "groups reset-offsets",
        does="To let it read all again (--execute does it, without it nothing changes)",
        name=group_id,
        rest="--all-topics --to-earliest",
    )
