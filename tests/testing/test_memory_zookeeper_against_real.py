"""The same random operations against a real ZooKeeper, the one in memory, and the simulation's: nobody can
tell them apart, be the nodes open or closed to other clients."""

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from kazoo.protocol.states import Callback

from simulation.machines.zookeeper import Ensemble, SimulatedZooKeeper
from simulation.schedule import US_PER_MS, Process, Schedule
from sparklog.model.zookeeper import (
    Check,
    Create,
    Delete,
    Node,
    Operation,
    OperationRefused,
    SessionExpired,
    SetData,
    Stat,
    Unread,
    ZooKeeper,
    ZooKeeperError,
)
from sparklog.model.zookeeper_access import (
    CREATOR_ALONE,
    CREATOR_WRITES,
    OPEN,
    OPEN_ACCESS,
    WORLD,
    Acl,
    Grant,
    NodeAccess,
    Permissions,
)
from sparklog.testing.memory_zookeeper import MemoryZooKeeper, MemoryZooKeeperServer
from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper
from sparklog.zookeeper.kazoo_admin import KazooAdmin

SESSION_TIMEOUT_MS = 6_000
START_TIMEOUT_MS = 15_000
WAIT_S = 60
STEPS = 150
CLIENTS = 2
NAMES = ("a", "b")
PATHS = ["/" + "/".join(names) for depth in (1, 2, 3) for names in itertools.product(NAMES, repeat=depth)]

integration = pytest.mark.integration

Client = KazooAdmin | MemoryZooKeeper | SimulatedZooKeeper

ACLS = (
    OPEN,
    CREATOR_WRITES,
    CREATOR_ALONE,
    CREATOR_ALONE | {Grant(WORLD, "anyone", Permissions.CREATE | Permissions.READ)},
    frozenset({Grant(WORLD, "anyone", Permissions.ADMIN | Permissions.DELETE)}),
)
"""Grants that nodes get."""


def closed_by_name(path: str) -> Acl:
    """Which grants a client gives its nodes; the root stays everybody's."""
    return OPEN if path == "/" else CREATOR_ALONE if path.endswith("b") else CREATOR_WRITES


OF_STRANGERS = (OPEN_ACCESS,) * CLIENTS
CLOSED = (NodeAccess(lambda: "ours:1", closed_by_name), NodeAccess(lambda: "theirs:2"))
"""The access of the clients."""
SETTLED_US = 1_000 * US_PER_MS
"""After so much simulated time everything that was on its way has arrived."""


def simulated_ensemble() -> Ensemble:
    ensemble = Ensemble(Schedule(), 1, (0.5, 3.0), SESSION_TIMEOUT_MS)
    ensemble.start()
    return ensemble


def settle(client: SimulatedZooKeeper) -> None:
    schedule = client.process.schedule
    schedule.run_until(schedule.now_us + SETTLED_US)


@dataclass
class Side:
    """One ZooKeeper with a few sessions, and what its watches said since the last step."""

    connect: Callable[[NodeAccess], Client]
    access: tuple[NodeAccess, ...] = OF_STRANGERS
    clients: list[Client] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=lambda: [[] for _ in range(CLIENTS)])

    def __post_init__(self) -> None:
        self.clients = [self.connect(access) for access in self.access]

    def reconnect(self, number: int) -> None:
        self.clients[number].close()
        self.clients[number] = self.connect(self.access[number])

    def heard(self) -> list[list[str]]:
        """What the watches of every client said, once all of it has arrived."""
        for client in self.clients:
            client.exists("/")  # open to all; whatever was sent before its answer has arrived with it
            if isinstance(client, SimulatedZooKeeper):
                settle(client)
                continue
            called = threading.Event()
            if isinstance(client, MemoryZooKeeper):
                client._callbacks.put(called.set)
            else:
                client._handler.dispatch_callback(Callback("watch", called.set, ()))
            assert called.wait(WAIT_S)
        said = [list(calls) for calls in self.calls]
        for calls in self.calls:
            calls.clear()
        return said

    def close(self) -> None:
        for client in self.clients:
            client.close()


Step = tuple[str, int, object]
"""What to do, by which client, with what."""


def random_operation(dice: random.Random, *, may_be_sequential: bool = False) -> Operation:
    path = dice.choice(PATHS)
    version = dice.choice((-1, -1, -1, 0, 0, 1, 2))
    kind = dice.randrange(8)
    if kind < 4:
        is_sequential = may_be_sequential and dice.random() < 0.2
        return Create(path, dice.randbytes(2), dice.random() < 0.2, is_sequential)
    if kind < 6:
        return SetData(path, dice.randbytes(2), version)
    return Delete(path, version) if kind == 6 else Check(path, max(version, 0))


def random_step(dice: random.Random) -> Step:
    client, path = dice.randrange(CLIENTS), dice.choice(PATHS)
    kind = dice.choices(
        ("multi", "single", "ensure_path", "watch_data", "watch_children", "read", "reconnect", "grant"),
        (8, 8, 1, 6, 6, 3, 0.3, 1.5),
    )[0]
    if kind == "grant":
        return kind, client, (path, dice.choice(ACLS))
    if kind == "multi":
        length = dice.choice((1, 2, 2, 3, 3, 4, 6))
        return kind, client, [random_operation(dice, may_be_sequential=True) for _ in range(length)]
    if kind == "single":
        return kind, client, random_operation(dice)
    return kind, client, path


def take(side: Side, step: Step) -> object:
    """Do it; what came of it, refusals included."""
    kind, number, what = step
    client = side.clients[number]
    try:
        if kind == "multi":
            assert isinstance(what, list)
            return client.multi(what)
        if kind == "single":
            return single(client, what)
        if kind == "grant":
            assert isinstance(what, tuple)
            path, acl = what
            return grants(client, path), set_grants(client, path, acl), grants(client, path)
        assert isinstance(what, str)
        if kind == "ensure_path":
            return client.ensure_path(what)
        if kind == "watch_data":
            return client.watch_data(what, lambda: side.calls[number].append(f"data {what}"))
        if kind == "watch_children":
            table = "data" if client.exists(what) is None else "children"
            return client.watch_children(what, lambda: side.calls[number].append(f"{table} {what}"))
        if kind == "reconnect":
            return side.reconnect(number)
        return client.get(what), client.exists(what), client.children(what)
    except OperationRefused as refused:
        return type(refused), getattr(refused, "index", None), refused.operation, refused.reason
    except ZooKeeperError as refused:
        return type(refused)


def grants(client: Client, path: str) -> Acl | Unread:
    if isinstance(client, SimulatedZooKeeper):
        return client._ensemble.tree.acl(client.session_id, path)
    return client.acls([path])[0]


def set_grants(client: Client, path: str, acl: Acl) -> Unread | None:
    """What a client without a digest asks for itself is refused as illegal by the real one: it asks not."""
    if any(grant.scheme == "auth" for grant in acl) and client_access(client).digest is None:
        return None
    if isinstance(client, SimulatedZooKeeper):
        return client._ensemble.tree.set_acl(client.session_id, path, acl)
    return client.set_acls({path: acl})[path]


def client_access(client: Client) -> NodeAccess:
    return client.access if isinstance(client, SimulatedZooKeeper) else client._access


def single(client: ZooKeeper, operation: object) -> object:
    match operation:
        case Create(path, data, ephemeral):
            return client.create(path, data, ephemeral=ephemeral)
        case SetData(path, data, version):
            return client.set(path, data, version)
        case Delete(path, version):
            return client.delete(path, version)
        case Check():
            return client.multi([operation])
    raise AssertionError(operation)


def relative(result: object, base: int, sessions: dict[int, int]) -> object:
    """The result with transactions counted from ``base``, and clients in place of sessions."""
    match result:
        case Stat(version, czxid, mzxid, owner):
            return Stat(version, czxid - base, mzxid - base, sessions[owner])
        case Node(data, stat):
            return data, relative(stat, base, sessions)
        case list() | tuple():
            return [relative(one, base, sessions) for one in result]
    return result


def owners(side: Side) -> dict[int, int]:
    return {0: 0, **{client.session_id: number for number, client in enumerate(side.clients, 1)}}


def base_zxid(side: Side) -> int:
    side.clients[0].create("/base")
    stat = side.clients[0].exists("/base")
    assert stat is not None
    side.clients[0].delete("/base")
    return stat.czxid


def everything(side: Side) -> object:
    seen = [[take(side, ("read", number, path)) for path in PATHS] for number in range(CLIENTS)]
    return [side.clients[0].children("/"), seen]


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """A server to which nobody else talks: every transaction is ours."""
    with EmbeddedZooKeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@integration
@pytest.mark.parametrize(
    ("seed", "access"),
    [
        *(pytest.param(seed, OF_STRANGERS, id=f"{seed}, open") for seed in range(4)),
        *(pytest.param(seed, CLOSED, id=f"{seed}, closed") for seed in range(4, 8)),
    ],
)
def test_random_operations_have_the_same_outcome(
    real_server: EmbeddedZooKeeper, seed: int, access: tuple[NodeAccess, ...]
) -> None:
    dice = random.Random(seed)
    address = f"{real_server.connect_string}/seed-{seed}"

    def connect_really(access: NodeAccess) -> KazooAdmin:
        client = KazooAdmin(address, SESSION_TIMEOUT_MS, access=access)
        client.start(START_TIMEOUT_MS)
        return client

    real = Side(connect_really, access)
    memory_server = MemoryZooKeeperServer()
    memory = Side(lambda access: memory_server.client(access=access), access)
    ensemble, numbers = simulated_ensemble(), itertools.count(1)

    def connect(access: NodeAccess) -> SimulatedZooKeeper:
        name = f"client-{next(numbers)}"
        return ensemble.client(Process(ensemble.schedule, name), name, access)

    simulated = Side(connect, access)
    bases = {id(side): base_zxid(side) for side in (real, memory, simulated)}
    story: list[Step] = []
    for _ in range(STEPS):
        step = random_step(dice)
        story.append(step)
        told = "\n".join(map(str, story[-12:]))
        outcome, heard = comparable(real, take(real, step), bases), in_order(real.heard(), step)
        for side in (memory, simulated):
            assert comparable(side, take(side, step), bases) == outcome, told
            assert in_order(side.heard(), step) == heard, told
        memory_server.tree.check_invariants()
        ensemble.tree.check_invariants()
    for side in (memory, simulated):
        assert comparable(side, everything(side), bases) == comparable(real, everything(real), bases)
    for side in (real, memory, simulated):
        side.close()


def in_order(heard: list[list[str]], step: Step) -> list[list[str]]:
    """In which order a session's nodes vanish, the server leaves to a hash set."""
    return [sorted(said) for said in heard] if step[0] == "reconnect" else heard


def comparable(side: Side, result: object, bases: dict[int, int]) -> object:
    return relative(result, bases[id(side)], owners(side))


# ------------------------------------------------------------------------------------------------ sessions


@pytest.mark.parametrize("kind", [pytest.param("real", marks=integration), "memory", "simulated"])
def test_an_expiry_is_told_in_the_same_order(
    kind: str,
    request: pytest.FixtureRequest,
    expire_session: Callable[[KazooZooKeeper], None],
) -> None:
    client: Client
    if kind == "real":
        address = request.getfixturevalue("zookeeper_address")
        client = KazooAdmin(address, SESSION_TIMEOUT_MS)
        client.start(START_TIMEOUT_MS)
    elif kind == "memory":
        client = MemoryZooKeeperServer().client()
    else:
        ensemble = simulated_ensemble()
        client = ensemble.client(Process(ensemble.schedule, "client"), "host")
    told: list[str] = []
    over = threading.Event()
    client.watch_data("/", lambda: told.append("watch"))
    client.create("/brief", ephemeral=True)
    first = client.session_id

    def listen(event: str) -> None:
        told.append(event)
        if told[-2:] == ["expired", "connected"]:
            over.set()

    client.on_session(listen)
    if isinstance(client, MemoryZooKeeper):
        client.expire_session()
    elif isinstance(client, SimulatedZooKeeper):
        ensemble.expire("host")
        settle(client)
    else:
        expire_session(client)
    assert over.wait(WAIT_S), told
    assert told[:2] == ["suspended", "watch"]
    assert told.count("watch") == 1
    assert client.exists("/brief") is None
    assert client.generation == 1
    assert client.session_id not in (0, first)
    with pytest.raises(SessionExpired):
        client.multi([Create("/late")], generation=0)
    client.close()
    with pytest.raises(SessionExpired):
        client.get("/")
