"""The hosts file: what is different about the brokers of one host, by the host's name.

    # host      what is different
    node-1      rack=a  address=node-1.example.com
    10.0.0.5    rack=b
    *           rack=c

A host is named as it calls itself (``hostname``, in full or up to the first dot), or by the address from
which it reaches the driver. ``*`` stands for every host without a line of its own. The driver reads the file
and hands it to every broker's task, which looks its host up.

    rack      the broker's rack (``broker.rack``)
    address   what clients and other brokers are given to reach it, where that is not the host's own address
"""

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sparklog.model.errors import ConfigError

ANY_HOST: Final = "*"
_PROPERTIES: Final = ("rack", "address")


@dataclass(frozen=True, slots=True)
class HostProperties:
    """What the hosts file says of one host; None where it says nothing."""

    rack: str | None = None
    address: str | None = None


NOTHING_SPECIAL: Final = HostProperties()

Hosts = Mapping[str, HostProperties]
"""By name, in lower case."""


def read_hosts(path: Path) -> Hosts:
    """The hosts of a file. ConfigError names the file, the line and what is wrong with it."""
    try:
        return parse_hosts(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise ConfigError(f"hosts.file={path} cannot be read: {why}") from None
    except ConfigError as error:
        raise ConfigError(f"hosts.file={path}: {error}") from None


def parse_hosts(text: str) -> Hosts:
    """The hosts of a file's text. ConfigError names the line."""
    found: dict[str, HostProperties] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        name = words[0].lower()
        try:
            if name in found:
                raise ConfigError(f"{words[0]} is named twice; give a host one line")
            found[name] = _properties(words[0], words[1:])
        except ConfigError as error:
            raise ConfigError(f"line {number}: {error}") from None
    return found


def _properties(host: str, words: list[str]) -> HostProperties:
    given: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if name not in _PROPERTIES or not equals or not value:
            raise ConfigError(f"{word!r} of {host} is neither rack=NAME nor address=HOST")
        if name in given:
            raise ConfigError(f"{host} has two of {name}, {given[name]} and {value}; leave one")
        given[name] = value
    if not given:
        raise ConfigError(f"{host} is alone on its line; add rack=NAME, address=HOST or both")
    if host == ANY_HOST and "address" in given:
        raise ConfigError(f"address={given['address']} for {ANY_HOST} would be that of several hosts")
    return HostProperties(**given)


def own_names(address: str) -> tuple[str, ...]:
    """The names of this machine, which has ``address``."""
    names = (socket.gethostname(), socket.getfqdn())
    short = (name.partition(".")[0] for name in names)
    return tuple(dict.fromkeys((*names, *short, address)))


def properties_of(hosts: Hosts, names: Iterable[str]) -> HostProperties:
    """What ``hosts`` says of the host with these names; ConfigError if it is not named, and others are."""
    for name in (*names, ANY_HOST):
        if name.lower() in hosts:
            return hosts[name.lower()]
    raise ConfigError(
        f"hosts.file names {', '.join(hosts)}, but not this host, {' or '.join(names)}; give it a line, or "
        f"add one for {ANY_HOST}"
    )
