"""What the page's process gets from the driver that starts it, as a line of JSON on standard input.

The pipe stays open: its end is the end of the driver, and then of the page.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePlan:
    """``descriptor``: the listening socket, which the process inherits. ``servers``: brokers, at the listener
    that the page uses. ``controllers``: host and port of where to ask if no broker answers. ``options`` name
    the cluster in commands that the page shows. ``properties`` are those of a client; where ``mechanisms``
    are named, users log in by one of them. ``tls``: the settings ``ssl.*`` of the page, if it speaks TLS.
    """

    descriptor: int
    servers: str
    options: str
    host: str
    allowed_hosts: tuple[str, ...] = ()
    shows_records: bool = True
    controllers: tuple[tuple[str, int], ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    mechanisms: tuple[str, ...] = ()
    tls: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


def decode_plan(line: bytes) -> PagePlan:
    document: dict[str, Any] = json.loads(line)
    document["allowed_hosts"] = tuple(document["allowed_hosts"])
    document["mechanisms"] = tuple(document["mechanisms"])
    document["controllers"] = tuple((str(host), int(port)) for host, port in document["controllers"])
    return PagePlan(**document)
