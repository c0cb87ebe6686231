"""A real ZooKeeper, in which one client closes its nodes to others."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, Id

from sparklog.core.controller.state.node_acls import closed_acl
from sparklog.model.errors import ConfigError
from sparklog.model.zookeeper import AccessRefused, Check, Create, Delete, SetData, Unread
from sparklog.model.zookeeper_access import DIGEST, OPEN, WORLD, NodeAccess, Permissions
from sparklog.zookeeper import embedded
from sparklog.zookeeper.access_check import check_access, check_digest
from sparklog.zookeeper.kazoo_admin import KazooAdmin
from tests.waiting import until

pytestmark = pytest.mark.integration

SESSION_TIMEOUT_MS = 6_000
START_TIMEOUT_MS = 15_000
USERS = "/config/users"

Connect = Callable[..., KazooAdmin]


@pytest.fixture
def connect(zookeeper_address: str) -> Iterator[Connect]:
    """Opens a session of whoever shows a digest; ``below`` goes to the end of its chroot."""
    with ExitStack() as sessions:

        def open_session(digest: str | Callable[[], str] | None = None, below: str = "") -> KazooAdmin:
            shown = (lambda: digest) if isinstance(digest, str) else digest
            access = NodeAccess() if shown is None else NodeAccess(shown, closed_acl)
            session = KazooAdmin(zookeeper_address + below, SESSION_TIMEOUT_MS, access=access)
            session.start(START_TIMEOUT_MS)
            sessions.callback(session.close)
            return session

        yield open_session


def test_others_read_and_change_nothing(connect: Connect) -> None:
    ours, stranger, other = connect("broker:right"), connect(), connect("broker:wrong")
    ours.create("/a", b"1")
    ours.multi([Create("/brief", ephemeral=True), Create("/a/queue", sequential=True)])
    for client in (stranger, other):
        assert client.get("/a") == ours.get("/a")
        for refused in (
            lambda: client.set("/a", b"2"),  # noqa: B023 (called at once)
            lambda: client.delete("/brief"),  # noqa: B023
            lambda: client.create("/b"),  # noqa: B023
            lambda: client.ensure_path("/b/c"),  # noqa: B023
            lambda: client.multi([Check("/a", 0), SetData("/a", b"2", 0)]),  # noqa: B023
            lambda: client.multi([Delete("/a/queue0000000000")]),  # noqa: B023
        ):
            with pytest.raises(AccessRefused, match="does not let"):
                refused()
        assert client.set_acls({"/a": OPEN, "/none": OPEN}) == {"/a": Unread.CLOSED, "/none": Unread.MISSING}
    assert ours.children("/") == ["a", "brief"]


def test_a_confidential_node_is_read_by_nobody_else(connect: Connect) -> None:
    ours, stranger = connect("broker:right"), connect()
    ours.ensure_path(USERS)
    for refused in (
        lambda: stranger.get(USERS),
        lambda: stranger.exists(USERS),
        lambda: stranger.children(USERS),
        lambda: stranger.get_many(["/config", USERS]),
        lambda: stranger.multi([Check(USERS, 0)]),
    ):
        with pytest.raises(
            AccessRefused, match=rf"does not let strangers read {USERS}: .*set zookeeper\.digest"
        ):
            refused()
    assert stranger.acls(["/config", USERS])[1] is Unread.CLOSED
    assert stranger.children_many(["/config", USERS]) == [["users"], Unread.CLOSED]


def test_a_refused_watch_fires_never(connect: Connect) -> None:
    ours, stranger = connect("broker:right"), connect()
    ours.ensure_path(USERS)
    called: list[str] = []
    for watch in (stranger.watch_children, stranger.watch_data):
        with pytest.raises(AccessRefused):
            watch(USERS, lambda: called.append("refused"))
    ours.set_acls({USERS: OPEN})
    stranger.watch_data(USERS, lambda: called.append("allowed"))
    ours.set(USERS, b"changed")
    until(lambda: called, "the watch")
    assert called == ["allowed"]


def test_the_chroot_is_closed_and_what_is_above_it_is_nobodys(connect: Connect) -> None:
    above = connect()
    ours = connect("broker:right", "/cluster/1")
    (acl,) = ours.acls(["/"])
    assert isinstance(acl, frozenset)
    assert {(one.scheme, one.permissions) for one in acl} == {
        (DIGEST, Permissions.ALL),
        (WORLD, Permissions.READ),
    }
    assert above.acls(["/cluster"]) == [OPEN]
    connect("another:user", "/cluster/2").create("/b")
    with pytest.raises(AccessRefused):
        above.create("/cluster/1/controller")


def test_a_wrong_password_shows_at_the_first_closed_node(connect: Connect) -> None:
    connect("broker:right").ensure_path(USERS)
    for wrong, whom in (
        (connect("broker:wrong"), r"user 'broker' create /.*correct zookeeper\.digest"),
        (connect(), r"strangers create /.*set zookeeper\.digest"),
    ):
        with pytest.raises(AccessRefused, match=whom):
            check_access(wrong)
    again = connect("broker:right")
    check_access(again)
    assert again.children("/") == ["config"]


def test_a_check_finds_closed_users_below_an_open_root(connect: Connect) -> None:
    stranger = connect()
    check_access(stranger)
    connect("broker:right").ensure_path(USERS)
    with pytest.raises(AccessRefused, match=USERS):
        check_access(stranger)


def test_a_password_that_changes_counts_from_the_next_connect_on(
    connect: Connect, expire_session: Callable[[KazooAdmin], None]
) -> None:
    passwords = ["right"]
    ours = connect(lambda: f"broker:{passwords[0]}")
    ours.create("/a")
    passwords[0] = "wrong"
    ours.set("/a", b"the same connection")
    expire_session(ours)
    with pytest.raises(AccessRefused, match="user 'broker' change /a"):
        ours.set("/a", b"a new connection")
    passwords[0] = "right"
    expire_session(ours)
    ours.set("/a", b"right again")


def test_a_password_that_cannot_be_had_now_is_the_one_from_before(
    connect: Connect, expire_session: Callable[[KazooAdmin], None], caplog: pytest.LogCaptureFixture
) -> None:
    problems: list[str] = []

    def digest() -> str:
        if problems:
            raise ConfigError(problems[0])
        return "broker:right"

    ours = connect(digest)
    ours.create("/a")
    problems.append("/secrets cannot be read here")
    with caplog.at_level(logging.WARNING, "sparklog.zookeeper.kazoo_adapter"):
        expire_session(ours)
        ours.set("/a", b"1")
    assert "the user and password from before: /secrets cannot be read here" in caplog.text


def test_a_password_that_cannot_be_had_at_the_start_is_no_start(connect: Connect) -> None:
    def digest() -> str:
        raise ConfigError("/secrets cannot be read here")

    with pytest.raises(ConfigError, match="/secrets cannot be read here"):
        connect(digest)


def test_no_password_and_no_credential_is_in_kazoos_log(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(1):
        logging.getLogger("kazoo").setLevel(1)
        ours = connect("broker:planted-password")
        ours.ensure_path(USERS)
        ours.create(f"{USERS}/alice", b"planted-credential")
        ours.get(f"{USERS}/alice")
        logging.getLogger("kazoo").setLevel(logging.NOTSET)
    assert "Connecting to" in caplog.text, "kazoo's log is in it"
    assert "planted" not in caplog.text


def test_a_server_that_hashes_otherwise_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    check_digest(connect("broker:right"))
    flag = "-Dzookeeper.DigestAuthenticationProvider.digestAlg=SHA3-256"
    monkeypatch.setattr(embedded, "_JVM_FLAGS", (*embedded._JVM_FLAGS, flag))
    access = NodeAccess(lambda: "broker:right", closed_acl)
    with (
        embedded.EmbeddedZooKeeper(tmp_path) as server,
        KazooAdmin(server.connect_string, access=access) as ours,
    ):
        ours.start(START_TIMEOUT_MS)
        with pytest.raises(AccessRefused, match=r"by its SHA-1 hash: .*digestAlg"):
            check_digest(ours)
        assert ours.children("/") == ["zookeeper"]


def test_grants_of_other_schemes_are_shown_as_they_are(connect: Connect, zookeeper_address: str) -> None:
    ours = connect()
    raw = KazooClient(zookeeper_address)
    raw.start(START_TIMEOUT_MS / 1_000)
    raw.create("/theirs", acl=[ACL(31, Id("ip", "127.0.0.1")), ACL(1, Id("world", "anyone"))])
    raw.stop()
    raw.close()
    (acl,) = ours.acls(["/theirs"])
    assert isinstance(acl, frozenset)
    assert {(one.scheme, one.identity) for one in acl} == {("ip", "127.0.0.1"), ("world", "anyone")}
