"""ZooKeeper in the simulation: one tree, sessions that run out, late watches, answers that get lost.

The tree is the one that is compared with a real server in the tests. Around it, as at kazoo's end of a real
connection: every operation takes time during which the rest of the world goes on; a client that is cut off is
told ``suspended`` and its operations end in ConnectionLost; a session whose client was not heard of for the
session's time-out expires, and the client learns of that when it is connected again.

``unknown`` makes writes end in ConnectionLost with an outcome that nobody knows: done before, not done, or
done a while later, which ZooKeeper allows as long as the session lives.
"""

import contextlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from simulation.schedule import US_PER_MS, Process, Schedule, dice
from sparklog.model.zookeeper import (
    ANY_VERSION,
    ConnectionLost,
    Create,
    Delete,
    MultiFailed,
    Node,
    Operation,
    OperationRefused,
    SessionEvent,
    SessionExpired,
    SetData,
    Stat,
    ZooKeeperError,
)
from sparklog.model.zookeeper_access import OPEN_ACCESS, NodeAccess
from sparklog.testing.memory_zookeeper import Firing, ZooKeeperTree

SESSION_CHECK_MS: Final = 100
SILENCE_MS: Final = 300
"""How long an operation waits for a connection before it ends in ConnectionLost."""

NEWS_MS: Final = 100
"""Within this time news are not late."""

LATE_MS: Final = (60, 400, 1_500)
"""How long a write may still be under way after its client was told that the connection is lost."""

Wash = Callable[[Sequence[Operation]], Sequence[Operation]]


@dataclass(slots=True)
class Ensemble:
    """The servers, and everybody's way to them."""

    schedule: Schedule
    seed: int
    delay_ms: tuple[float, float]
    session_timeout_ms: int
    tree: ZooKeeperTree = field(default_factory=ZooKeeperTree)
    on_change: Callable[[], None] = lambda: None
    """Called after every transaction that changed something."""
    on_write: Callable[[Sequence[Operation]], None] = lambda operations: None
    """Called before every write that came to the servers, refused or not."""
    wash: Wash = lambda operations: operations
    """What a mutant does to a write before it is applied."""
    _clients: "dict[int, SimulatedZooKeeper]" = field(default_factory=dict)
    _at_host: "dict[str, list[SimulatedZooKeeper]]" = field(default_factory=dict)
    _heard_ms: dict[int, int] = field(default_factory=dict)
    is_cut: Counter[str] = field(default_factory=Counter)
    unknown: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    late_watches_ms: float = 0.0
    reach: Callable[[str], None] = lambda mark: None
    """Told of marks."""

    def start(self) -> None:
        self.schedule.after(SESSION_CHECK_MS * US_PER_MS, None, self._check_sessions)

    def client(self, process: Process, host: str, access: NodeAccess = OPEN_ACCESS) -> "SimulatedZooKeeper":
        """The client of a program at ``host``; it takes the place of those of programs that are dead."""
        draw = dice(self.seed, f"zookeeper {process.name}")
        client = SimulatedZooKeeper(self, process, host, draw, access)
        self._at_host[host] = [*(one for one in self._of(host) if one.process.is_alive), client]
        return client

    def open_session(self, client: "SimulatedZooKeeper") -> int:
        session_id = self.tree.open_session(client.access)
        self._clients[session_id] = client
        self._heard_ms[session_id] = self.schedule.now_ms
        return session_id

    def cut(self, host: str) -> None:
        self.is_cut[host] += 1
        for client in self._of(host):
            client.lose_connection()

    def reconnect(self, host: str) -> None:
        self.is_cut[host] -= 1
        if not self.is_cut[host]:
            for client in self._of(host):
                client.restore_connection()

    def expire(self, host: str) -> None:
        """ZooKeeper ends the sessions of a host, as after a pause of its own."""
        for client in self._of(host):
            client.lose_connection()
            self._expire(client.session_id)
            if not self.is_cut[host]:
                client.restore_connection()

    def fall_behind(self, host: str) -> None:
        """The server that this host's clients are connected to hears nothing from the others for a while."""
        state = self.tree.copy()
        for client in self._of(host):
            client.fall_behind(state)

    def catch_up(self, host: str) -> None:
        for client in self._of(host):
            client.catch_up()

    def believe(self, host: str, share: float) -> None:
        """Fewer answers to this host get lost again."""
        self.unknown[host] = max(0.0, self.unknown[host] - share)

    def hurry_watches(self, late_ms: float) -> None:
        self.late_watches_ms = max(0.0, self.late_watches_ms - late_ms)

    def hears_in_time(self, process: Process) -> bool:
        """Whether nothing keeps news of ZooKeeper from the process now, and nothing has since the last
        question.
        """
        heard = [one.hears_in_time() for one in self._clients.values() if one.process is process]
        return bool(heard) and all(heard)

    def _of(self, host: str) -> "list[SimulatedZooKeeper]":
        return self._at_host.get(host, [])

    def _check_sessions(self) -> None:
        now_ms = self.schedule.now_ms
        for session_id, client in list(self._clients.items()):
            if client.is_heard:
                self._heard_ms[session_id] = now_ms
            elif now_ms - self._heard_ms[session_id] > self.session_timeout_ms:
                self._expire(session_id)
        self.start()

    def _expire(self, session_id: int) -> None:
        client = self._clients.get(session_id)
        if client is None or not self.tree.is_open(session_id):
            return
        client.lose_connection()
        fired = self.tree.expire_session(session_id)
        del self._clients[session_id]
        self.deliver(fired)
        client.expired()
        if not client.process.is_alive:
            client.forget()
        self.on_change()

    def deliver(self, fired: Sequence[Firing]) -> None:
        for firing in fired:
            client = self._clients.get(firing.session_id)
            if client is not None:
                assert callable(firing.key)
                client.fire(firing.key, self.late_watches_ms)

    def apply(self, session_id: int, operations: Sequence[Operation]) -> list[Stat | None]:
        washed = self.wash(operations)
        self.on_write(washed)
        applied = self.tree.apply(session_id, washed)
        self.deliver(applied.fired)
        self.on_change()
        return applied.stats


class SimulatedZooKeeper:
    """``model.zookeeper.ZooKeeper`` for one process."""

    def __init__(
        self,
        ensemble: Ensemble,
        process: Process,
        host: str,
        draw: random.Random,
        access: NodeAccess = OPEN_ACCESS,
    ) -> None:
        self.process = process
        self.access = access
        self.host = host
        self._ensemble = ensemble
        self._draw = draw
        self._listeners: list[Callable[[SessionEvent], None]] = []
        self._generation = 0
        self._is_connected = not ensemble.is_cut[host]
        self.losses = int(not self._is_connected)
        """How often the connection was lost, or the session."""
        self._is_closed = False
        self._has_expired = False
        self._last_delivery_us = 0
        self._losses_known = 0
        self._behind: ZooKeeperTree | None = None
        self._unheard: list[Callable[[], None]] = []
        self._session_id = ensemble.open_session(self)

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def generation(self) -> int:
        return self._generation

    @property
    def is_heard(self) -> bool:
        return self._is_connected and self.process.is_running

    def hears_in_time(self) -> bool:
        """As of the ensemble, for one client."""
        known, self._losses_known = self._losses_known, self.losses
        is_late = self._last_delivery_us > self._ensemble.schedule.now_us + NEWS_MS * US_PER_MS
        return self.is_heard and known == self.losses and self._behind is None and not is_late

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        self._listeners.append(callback)

    def close(self) -> None:
        if self._is_closed or not self.process.is_alive:
            return
        self._is_closed = True
        if self._is_connected and self._ensemble.tree.is_open(self._session_id):
            self._ensemble.deliver(self._ensemble.tree.close_session(self._session_id))
            self._ensemble._clients.pop(self._session_id, None)
            self._ensemble.on_change()

    # ---- the connection ------------------------------------------------------------------------------------

    def lose_connection(self) -> None:
        if not self._is_connected:
            return
        self._is_connected = False
        self.losses += 1
        self.catch_up()  # with the next server that it finds
        self._tell("suspended")
        tree = self._ensemble.tree
        if tree.is_open(self._session_id):
            self._ensemble.deliver(tree.lose_watches(self._session_id))

    def expired(self) -> None:
        """The server forgot the session; told when there is a connection."""
        self._has_expired = True
        self.losses += 1
        if not self._ensemble.is_cut[self.host] and self.process.is_alive:
            self.restore_connection()

    def forget(self) -> None:
        self._is_closed = True

    def restore_connection(self) -> None:
        if self._is_connected or self._is_closed or not self.process.is_alive:
            return
        if self._has_expired:
            self._has_expired = False
            self._generation += 1
            self._tell("expired")
            self._session_id = self._ensemble.open_session(self)
        self._is_connected = True
        self._tell("connected")

    def _tell(self, event: SessionEvent) -> None:
        for listener in self._listeners:
            self.deliver(lambda listener=listener: listener(event), 0.0)  # type: ignore[misc]

    def deliver(self, callback: Callable[[], None], late_ms: float) -> None:
        """Callbacks come in the order in which things happened, each after some time."""
        schedule = self._ensemble.schedule
        low, high = self._ensemble.delay_ms
        delay_us = int((self._draw.uniform(low, high) + self._draw.random() * late_ms) * US_PER_MS)
        self._last_delivery_us = max(schedule.now_us + delay_us, self._last_delivery_us)
        schedule.at(self._last_delivery_us, self.process, callback)

    # ---- a server that is behind ---------------------------------------------------------------------------

    def fall_behind(self, state: ZooKeeperTree) -> None:
        """From now on reads see ``state``, and watches nothing. ZooKeeper allows that: what a session sees
        never goes back, and holds its own writes, but may be old."""
        if self._is_connected and self._behind is None:
            self._behind = state

    def catch_up(self) -> None:
        self._behind = None
        unheard, self._unheard = self._unheard, []
        for callback in unheard:
            self.deliver(callback, 0.0)

    def fire(self, callback: Callable[[], None], late_ms: float) -> None:
        """A watch has fired, at the other servers at least."""
        if self._behind is not None:
            self._unheard.append(callback)
        else:
            self.deliver(callback, late_ms)

    def _seen(self) -> ZooKeeperTree:
        """The tree as the server has it to which we are connected."""
        if self._behind is None:
            return self._ensemble.tree
        self._ensemble.reach("ZooKeeper was read in an earlier state")
        return self._behind

    # ---- operations ----------------------------------------------------------------------------------------

    def sync(self) -> None:
        self._travel()
        self.catch_up()

    def get(self, path: str) -> Node | None:
        return self._readable(path).get(path)

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return [self.get(path) for path in paths]

    def exists(self, path: str) -> Stat | None:
        return self._readable(path).exists(path)

    def children(self, path: str) -> list[str]:
        return self._readable(path).children(path)

    def _readable(self, path: str) -> ZooKeeperTree:
        """The tree for a read; AccessRefused if this client may not read the node."""
        self._travel()
        seen = self._seen()
        seen.check_read(self._session_id, path)
        return seen

    def multi(self, operations: Sequence[Operation], *, generation: int | None = None) -> list[Stat | None]:
        if generation is not None and generation != self._generation:
            raise SessionExpired(
                f"the session of generation {generation} is over, this is {self._generation}"
            )
        session_id = self._session_id
        fate = self._fate()
        if fate != "late":
            self._travel()
        if fate == "lost":
            self._lose("the request was lost")
        if fate == "late":
            self._apply_later(session_id, operations)
        if session_id != self._session_id:
            raise SessionExpired("the session expired while the request was on its way")
        self.catch_up()
        stats = self._ensemble.apply(session_id, operations)
        if fate == "done":
            self._lose("the answer was lost")
        self._travel()
        return stats

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> None:
        self._single(Create(path, data, ephemeral))

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        stat = self._single(SetData(path, data, version))
        assert stat is not None
        return stat

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._single(Delete(path, version))

    def ensure_path(self, path: str) -> None:
        self._travel()
        self.catch_up()
        try:
            self._ensemble.deliver(self._ensemble.tree.ensure_path(self._session_id, path))
        except MultiFailed as failed:  # below an ephemeral node: nothing was created before that
            raise ZooKeeperError(f"{path} cannot be ensured: {failed}") from None

    def watch_data(self, path: str, callback: Callable[[], None]) -> None:
        self._travel()
        tree = self._ensemble.tree
        tree.check_read(self._session_id, path)
        if self._behind is not None and self._behind.exists(path) != tree.exists(path):
            self._unheard.append(callback)  # the change is on its way to our server
        else:
            tree.watch_data(self._session_id, path, callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> None:
        self._travel()
        tree = self._ensemble.tree
        tree.check_read(self._session_id, path)
        if self._behind is not None and self._behind.children(path) != tree.children(path):
            self._unheard.append(callback)
        else:
            tree.watch_children(self._session_id, path, callback)

    def _single(self, operation: Operation) -> Stat | None:
        try:
            return self.multi([operation])[0]
        except MultiFailed as failed:
            raise OperationRefused(operation, failed.reason) from None

    def _travel(self) -> None:
        """The way there or back; the world goes on meanwhile. ConnectionLost if there is none."""
        schedule = self._ensemble.schedule
        low, high = self._ensemble.delay_ms
        schedule.block(self.process, int(self._draw.uniform(low, high) * US_PER_MS / 2))
        if not self._is_connected and not self._is_closed:
            schedule.block(self.process, SILENCE_MS * US_PER_MS)
        if self._is_closed:
            raise SessionExpired("this client was closed")
        if not self._is_connected:
            raise ConnectionLost("no connection to ZooKeeper")

    def _fate(self) -> str:
        probability = self._ensemble.unknown[self.host]
        if probability < 1e-9 or self._draw.random() >= probability:
            return "normal"
        return self._draw.choice(("lost", "done", "late"))

    def _lose(self, why: str) -> None:
        """The connection breaks and comes back; the operation's outcome is unknown."""
        self.lose_connection()
        schedule = self._ensemble.schedule
        schedule.after(5 * US_PER_MS, None, self._come_back)
        raise ConnectionLost(why)

    def _come_back(self) -> None:
        if not self._ensemble.is_cut[self.host]:
            self.restore_connection()

    def _apply_later(self, session_id: int, operations: Sequence[Operation]) -> None:
        """The write is still under way in ZooKeeper while its client believes the connection lost."""
        ensemble = self._ensemble

        def apply() -> None:
            if ensemble.tree.is_open(session_id):
                with contextlib.suppress(MultiFailed):  # nobody is there to be told
                    ensemble.apply(session_id, operations)

        late_ms = self._draw.uniform(1, self._draw.choice(LATE_MS))
        ensemble.schedule.after(int(late_ms * US_PER_MS), None, apply)
        self._lose("no answer came")
