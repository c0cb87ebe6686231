"""On which ports the brokers of one start listen.

Every broker of a start has the same settings, so ``listeners`` cannot give each a port of its own. A listener
with port 0 there gets its ports from ``--port``: the first such listener of all brokers, then the next one's.
With three brokers, ``--port 9092`` and ``listeners=INTERNAL://:0,EXTERNAL://:0``, INTERNAL has 9092 to 9094
and EXTERNAL 9095 to 9097. With ``--port 0`` each takes a free one. A port that ``listeners`` names is every
broker's, which works only where each broker has a host of its own.
"""

from collections.abc import Mapping, Sequence

from sparklog.model.errors import ConfigError
from sparklog.model.listeners import ADVERTISED, LISTENERS, PORT_MAX, Listeners

Ports = Mapping[str, int]
"""The ports of one broker by listener, the one that users see first; 0 is any free one."""


def ports_of_brokers(listeners: Listeners, first_port: int, brokers: int) -> list[Ports]:
    """The ports of each broker, in the order of their ids; ConfigError if there are not so many ports."""
    unassigned = listeners.unassigned()
    last = first_port + len(unassigned) * brokers - 1
    if first_port and unassigned and last > PORT_MAX:
        raise ConfigError(
            f"{brokers} brokers with {len(unassigned)} listeners each need ports {first_port} to {last}, but "
            f"the last one is {PORT_MAX}; choose --port {first_port - last + PORT_MAX} or lower"
        )
    names = sorted(listeners.bound, key=lambda name: name != listeners.first)
    return [
        {name: _port(listeners, name, first_port, index, brokers) for name in names}
        for index in range(brokers)
    ]


def _port(listeners: Listeners, name: str, first_port: int, index: int, brokers: int) -> int:
    fixed = listeners.bound[name].port
    if fixed or not first_port:
        return fixed
    return first_port + listeners.unassigned().index(name) * brokers + index


def check_ports(
    listeners: Listeners, ports: Sequence[Ports], settings: Mapping[str, str], *, on_one_machine: bool
) -> None:
    """Raise ConfigError if brokers would listen, or be advertised, where another one is."""
    if len(ports) < 2:
        _check_each(ports)
        return
    for name, endpoint in listeners.bound.items():
        if endpoint.port and on_one_machine:
            raise ConfigError(
                f"{LISTENERS}={settings[LISTENERS]!r}: {len(ports)} brokers on one machine cannot all listen "
                f"on port {endpoint.port}; write {name}://{endpoint.host}:0, and choose ports with --port"
            )
    for name, endpoint in listeners.advertised.items():
        if endpoint.port and settings.get(ADVERTISED) and (endpoint.host or on_one_machine):
            raise ConfigError(
                f"{ADVERTISED}={settings[ADVERTISED]!r}: {len(ports)} brokers would have one address for "
                f"{name}; write port 0 for the port that each listens on"
            )
    _check_each(ports)


def _check_each(ports: Sequence[Ports]) -> None:
    for own in ports:
        used = [port for port in own.values() if port]
        twice = next((port for port in used if used.count(port) > 1), None)
        if twice is not None:
            names = " and ".join(name for name, port in own.items() if port == twice)
            raise ConfigError(
                f"--port assigns {twice} to one of the listeners {names}, but {LISTENERS} has it for another "
                "one; choose another --port"
            )
