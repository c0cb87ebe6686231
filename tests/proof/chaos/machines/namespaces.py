"""A network for one run: each node in a network namespace of its own, all on one bridge, and nothing outside.

The bridge is in a namespace too, so that this machine's own network is never touched: no packet of the run
can leave it, and none of the world gets in. Addresses are of 198.18.0.0/15, set aside for such benches.

Everything is named after the process that made it. ``remove_left_behind`` takes away what a run left that was
killed: processes in such a namespace first, then the namespace, with which its links and rules go.
"""

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Final

from chaos.machines.privileges import ToolFailed, call, is_left_behind, own_name, why_no_tools, why_not

TOOLS: Final = ("ip", "nsenter", "unshare", "iptables")
HUB: Final = "hub"
"""The node with the bridge; an address of its own makes it a place for clients."""

_CLONE_NEWNET: Final = 0x40000000
_FOLDER: Final = "/run/netns"
_GONE_TIMEOUT_S: Final = 5.0


def probe() -> str | None:
    """Why networks cannot be made here; None if they can."""
    why = why_no_tools(TOOLS)
    if why is not None:
        return why
    refused = why_not("unshare", "--net", "iptables", "-w", "-A", "INPUT", "-s", "198.18.0.1", "-j", "DROP")
    return f"network namespaces with rules are not allowed: {refused}" if refused else None


class Network:
    """Nodes by name, each at 198.18.0.N. ``set_up``, then ``command`` for whatever shall run in a node."""

    def __init__(self, nodes: Sequence[str]) -> None:
        """``nodes`` beside the hub."""
        if len(nodes) > 250:
            raise ValueError(f"{len(nodes)} nodes do not fit into one network; give 250 at most")
        self._numbers = {HUB: 1} | {node: 2 + index for index, node in enumerate(nodes)}

    def __enter__(self) -> "Network":
        try:
            self.set_up()
        except BaseException:
            self.tear_down()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.tear_down()

    @property
    def nodes(self) -> list[str]:
        return list(self._numbers)

    def address(self, node: str) -> str:
        return f"198.18.0.{self._numbers[node]}"

    def namespace(self, node: str) -> str:
        return own_name(node)

    def set_up(self) -> None:
        remove_left_behind()
        for node in self._numbers:
            call("ip", "netns", "add", self.namespace(node))
            call("ip", "-n", self.namespace(node), "link", "set", "lo", "up")
        hub = self.namespace(HUB)
        call("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        call("ip", "-n", hub, "link", "set", "bridge", "up")
        call("ip", "-n", hub, "address", "add", f"{self.address(HUB)}/24", "dev", "bridge")
        for node, number in self._numbers.items():
            if node != HUB:
                self._connect(node, f"to-{number}")

    def _connect(self, node: str, link: str) -> None:
        hub, there = self.namespace(HUB), self.namespace(node)
        call("ip", "-n", hub, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", there)
        call("ip", "-n", hub, "link", "set", link, "master", "bridge", "up")
        call("ip", "-n", there, "address", "add", f"{self.address(node)}/24", "dev", "eth0")
        call("ip", "-n", there, "link", "set", "eth0", "up")

    def command(self, node: str, command: Sequence[str]) -> list[str]:
        """The command as it is to be run so that it is in ``node``; its process id stays the starter's."""
        return ["nsenter", f"--net={_FOLDER}/{self.namespace(node)}", "--", *command]

    def call(self, node: str, *command: str) -> str:
        """Run a tool in ``node``."""
        return call(*self.command(node, command))

    @contextlib.contextmanager
    def inside(self, node: str) -> Iterator[None]:
        """This thread, and every thread and process that it starts meanwhile, is in ``node``."""
        home = os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY)
        there = os.open(f"{_FOLDER}/{self.namespace(node)}", os.O_RDONLY)
        try:
            _setns(there)
            yield
        finally:
            _setns(home)
            os.close(there)
            os.close(home)

    def tear_down(self) -> None:
        """Take everything away, with processes that are still in there; twice does no harm."""
        for node in self._numbers:
            remove(self.namespace(node))


def remove(namespace: str) -> None:
    """End what runs in a namespace and take it away, if it is there."""
    if not os.path.exists(f"{_FOLDER}/{namespace}"):
        return
    deadline = time.monotonic() + _GONE_TIMEOUT_S
    while (pids := call("ip", "netns", "pids", namespace).split()) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.02)
    call("ip", "netns", "delete", namespace)


def remove_left_behind() -> list[str]:
    """Namespaces of runs that have ended without taking them away; their names."""
    names = [line.split()[0] for line in call("ip", "netns", "list").splitlines() if line.strip()]
    left = [name for name in names if is_left_behind(name)]
    for name in left:
        with contextlib.suppress(ToolFailed):  # another run removes it at the same time
            remove(name)
    return left


def _setns(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot enter the network namespace: {os.strerror(error)}")
