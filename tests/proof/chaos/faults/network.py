"""Faults of the network between nodes of their own: cuts, one-way cuts, loss, delay, and lying packets.

A cut is a rule of iptables at the broker's end of its link: packets vanish, connections stay open on both
sides, and go on when the rule is taken away. With ``reset`` they are refused instead. Nothing but the nodes
of the run is touched: the rules live in the nodes' namespaces.
"""

import contextlib
import json
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import ClassVar, Final

from chaos.faults.packets import Plan
from chaos.faults.signals import pick_leader, told
from chaos.machines.bench import DRIVER
from chaos.machines.namespaces import HUB, Network
from chaos.machines.privileges import ToolFailed, why_not
from chaos.machines.walls import ZOOKEEPER, WalledPlaces, broker_node, probe
from chaos.nemesis import NAMESPACES, Cluster, Nemesis

BOTH, INTO, OUT = ("INPUT", "OUTPUT"), ("INPUT",), ("OUTPUT",)
DURATIONS: Final = (0.2, 0.5, 1.0, 1.0, 2.0, 3.0)
"""In session timeouts."""

VALUES: Final = r"[a-z]+/[0-9]+/producer-[0-9]+/[0-9]+#[0-9]+/[0-9]+"
"""What clients write as values: bytes that every batch's CRC protects, from producer to consumer."""

_QUEUE: Final = 7
_LOSSES: Final = (0.02, 0.05, 0.15, 0.4)
_DELAYS_MS: Final = (2.0, 20.0, 100.0, 400.0)


class Rules:
    """Rules of iptables in the nodes of a network, taken away together."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._made: list[tuple[str, tuple[str, ...]]] = []

    def add(self, node: str, chain: str, *rule: str) -> None:
        self._network.call(node, "iptables", "-w", "-A", chain, *rule)
        self._made.append((node, (chain, *rule)))

    def drop(self, node: str, other: str | None, chains: Sequence[str], *, reset: bool = False) -> None:
        """What comes into ``node`` (INPUT) or leaves it (OUTPUT) from or to another node, or all of them."""
        target = ("-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset") if reset else ("-j", "DROP")
        for chain in chains:
            interface = ("-i", "eth0") if chain == "INPUT" else ("-o", "eth0")
            side = "-s" if chain == "INPUT" else "-d"
            peer = () if other is None else (side, self._network.address(other))
            self.add(node, chain, *interface, *peer, *target)

    def remove(self) -> None:
        while self._made:
            node, rule = self._made.pop()
            with contextlib.suppress(ToolFailed):  # the node is gone with its rules
                self._network.call(node, "iptables", "-w", "-D", *rule)


def controller_node(cluster: Cluster, network: Network) -> str | None:
    """In which node the active controller is."""
    active = next((one for one in cluster.controllers() if one.is_active), None)
    if active is None:
        return None
    here = Path(f"/proc/{active.pid}/ns/net").stat().st_ino
    return next(
        (
            node
            for node in network.nodes
            if Path(f"/run/netns/{network.namespace(node)}").stat().st_ino == here
        ),
        None,
    )


class _OfNetwork(Nemesis):
    """A fault at one broker's link, for a while."""

    needs: ClassVar = frozenset({NAMESPACES})

    def __init__(self, places: WalledPlaces) -> None:
        self._places = places
        self._rules: Rules | None = None

    def probe(self) -> str | None:
        return probe()

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.choice(DURATIONS) * cluster.session_timeout_s * rng.uniform(0.9, 1.1)

    def begin(self, cluster: Cluster, rng: Random) -> str:
        self._rules = Rules(self._places.network)
        return self.strike(cluster, rng, self._places.network, self._rules)

    @abstractmethod
    def strike(self, cluster: Cluster, rng: Random, network: Network, rules: Rules) -> str: ...

    def end(self) -> None:
        if self._rules is not None:
            self._rules.remove()


class CutBroker(_OfNetwork):
    """A broker from everybody."""

    def __init__(self, places: WalledPlaces, kind: str, chains: Sequence[str]) -> None:
        super().__init__(places)
        self.kind = kind
        self._chains = chains

    def strike(self, cluster: Cluster, rng: Random, network: Network, rules: Rules) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        rules.drop(broker_node(broker.id), None, self._chains)
        return text


class CutFrom(_OfNetwork):
    """A broker from some node only; both ways or one, by silence or by resets, as chance has it."""

    what: ClassVar[str]

    @abstractmethod
    def others(self, cluster: Cluster, rng: Random, network: Network, broker_id: int) -> list[str]: ...

    def strike(self, cluster: Cluster, rng: Random, network: Network, rules: Rules) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        others = self.others(cluster, rng, network, broker.id)
        chains = rng.choice((BOTH, BOTH, INTO, OUT))
        reset = rng.random() < 0.2
        for other in others:
            rules.drop(broker_node(broker.id), other, chains, reset=reset)
        ways = {BOTH: "both ways", INTO: "what it is sent", OUT: "what it sends"}[chains]
        return f"{text}, from {', '.join(others) or 'nobody'}; {ways}{', by resets' if reset else ''}"


class CutFromBrokers(CutFrom):
    """From all other brokers: ZooKeeper, controller and clients still have it."""

    kind = "cut-from-brokers"
    weight = 2

    def others(self, cluster: Cluster, rng: Random, network: Network, broker_id: int) -> list[str]:
        return [broker_node(other) for other in cluster.broker_ids() if other != broker_id]


class CutOneLink(CutFrom):
    """From one other broker: a third one reaches both."""

    kind = "cut-one-link"

    def others(self, cluster: Cluster, rng: Random, network: Network, broker_id: int) -> list[str]:
        return [broker_node(rng.choice([other for other in cluster.broker_ids() if other != broker_id]))]


class CutFromZooKeeper(CutFrom):
    kind = "cut-from-zookeeper"
    weight = 2

    def others(self, cluster: Cluster, rng: Random, network: Network, broker_id: int) -> list[str]:
        return [ZOOKEEPER]


class CutFromController(CutFrom):
    """From the node of the active controller; that may be the driver's."""

    kind = "cut-from-controller"
    weight = 2

    def others(self, cluster: Cluster, rng: Random, network: Network, broker_id: int) -> list[str]:
        node = controller_node(cluster, network)
        return [] if node is None else [node]


class CutFromDriver(CutFrom):
    """From supervisor, Spark's driver and Spark's master; long ones make Spark give its executor up."""

    kind = "cut-from-driver"

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.choice((0.5, 1.0, 3.0, 7.0)) * cluster.session_timeout_s

    def others(self, cluster: Cluster, rng: Random, network: Network, broker_id: int) -> list[str]:
        return [DRIVER]


class CutFromClients(CutFrom):
    kind = "cut-from-clients"

    def others(self, cluster: Cluster, rng: Random, network: Network, broker_id: int) -> list[str]:
        return [HUB]


class CutController(_OfNetwork):
    """The active controller from everybody."""

    kind = "cut-controller"

    def strike(self, cluster: Cluster, rng: Random, network: Network, rules: Rules) -> str:
        node = controller_node(cluster, network)
        if node is None:
            return "nobody, as there was no controller"
        chains = rng.choice((BOTH, BOTH, INTO, OUT))
        rules.drop(node, None, chains)
        return f"controller in {node}: {' and '.join(chains)}"


class CutZooKeeper(_OfNetwork):
    """ZooKeeper from everybody: it lives, and sessions end."""

    kind = "cut-zookeeper"

    def strike(self, cluster: Cluster, rng: Random, network: Network, rules: Rules) -> str:
        rules.drop(ZOOKEEPER, None, BOTH)
        return "ZooKeeper"


class Loss(_OfNetwork):
    """A share of all packets of one broker's link is lost."""

    kind = "packet-loss"

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(2.0, 5.0) * cluster.session_timeout_s

    def strike(self, cluster: Cluster, rng: Random, network: Network, rules: Rules) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        share = rng.choice(_LOSSES)
        statistic = ("-m", "statistic", "--mode", "random", "--probability", f"{share}", "-j", "DROP")
        rules.add(broker_node(broker.id), "INPUT", "-i", "eth0", *statistic)
        rules.add(broker_node(broker.id), "OUTPUT", "-o", "eth0", *statistic)
        return f"{share:.0%} each way of {text}"


class _Queued(_OfNetwork):
    """What a broker is sent goes through a queue of ours."""

    def __init__(self, places: WalledPlaces) -> None:
        super().__init__(places)
        self._daemon: subprocess.Popen[bytes] | None = None

    def probe(self) -> str | None:
        rule = ("INPUT", "-p", "tcp", "-j", "NFQUEUE", "--queue-num", f"{_QUEUE}", "--queue-bypass")
        return probe() or why_not("unshare", "--net", "iptables", "-w", "-A", *rule)

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(2.0, 5.0) * cluster.session_timeout_s

    def queue(self, network: Network, rules: Rules, node: str, plan: Plan, *match: str) -> None:
        self._daemon = start_queue(network, node, plan)
        target = ("-j", "NFQUEUE", "--queue-num", f"{plan.queue}", "--queue-bypass")
        rules.add(node, "INPUT", "-i", "eth0", "-p", "tcp", *match, *target)

    def end(self) -> None:
        super().end()
        if self._daemon is not None:
            stop_queue(self._daemon)
            self._daemon = None


def start_queue(network: Network, node: str, plan: Plan) -> "subprocess.Popen[bytes]":
    """The daemon, once it is ready for packets."""
    program = [sys.executable, "-P", str(Path(__file__).with_name("packets.py")), json.dumps(asdict(plan))]
    daemon = subprocess.Popen(network.command(node, program), stdout=subprocess.PIPE)
    assert daemon.stdout is not None
    if daemon.stdout.readline() != b"ready\n":
        raise ToolFailed(f"the queue in {node} did not start: status {daemon.wait()}")
    return daemon


def stop_queue(daemon: "subprocess.Popen[bytes]") -> int:
    """Let go what is held; how many packets were changed."""
    daemon.terminate()
    output, _ = daemon.communicate()
    return int(output or 0)


class Delay(_Queued):
    """Everything that a broker is sent comes late, and in another order."""

    kind = "packet-delay"

    def strike(self, cluster: Cluster, rng: Random, network: Network, rules: Rules) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        delay_ms = rng.choice(_DELAYS_MS)
        jitter_ms = delay_ms * rng.choice((0.0, 0.2, 1.0))
        plan = Plan(_QUEUE, delay_ms=delay_ms, jitter_ms=jitter_ms, seed=rng.getrandbits(32))
        self.queue(network, rules, broker_node(broker.id), plan)
        return f"{delay_ms:g} ms, give or take {jitter_ms:g}, to {text}"


class Corruption(_Queued):
    """Bits of records change on their way to a broker, and the TCP checksum with them."""

    kind = "packet-corruption"

    def strike(self, cluster: Cluster, rng: Random, network: Network, rules: Rules) -> str:
        broker = pick_leader(cluster, rng)
        text = told(cluster, broker)
        share = rng.choice((0.02, 0.1, 0.5))
        plan = Plan(_QUEUE, corrupt=share, pattern=VALUES, seed=rng.getrandbits(32))
        self.queue(network, rules, broker_node(broker.id), plan)
        return f"{share:.0%} of packets with uncompressed records, to {text}"


def all_of_network(places: WalledPlaces) -> list[Nemesis]:
    """Every nemesis of this file."""
    simple: tuple[type[_OfNetwork], ...] = (
        CutFromBrokers,
        CutOneLink,
        CutFromZooKeeper,
        CutFromController,
        CutFromDriver,
        CutFromClients,
        CutController,
        CutZooKeeper,
        Loss,
        Delay,
        Corruption,
    )
    return [
        CutBroker(places, "cut-broker", BOTH),
        CutBroker(places, "cut-broker-in", INTO),
        CutBroker(places, "cut-broker-out", OUT),
        *(nemesis(places) for nemesis in simple),
    ]
