"""Users who log in to the page: kept for a while, for a bounded number of them, known by their passwords."""

import base64
from dataclasses import dataclass, field
from typing import Any

import pytest

from sparklog.client.errors import ClusterUnavailable, LoginDenied, SecurityRefused
from sparklog.web.page_logins import UNUSED_MAX_MS, VIEWERS_MAX, NeedsLogin, PageLogins


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@dataclass
class FakeViewer:
    """Stands for a client; ``error`` is what its first connection meets."""

    mechanism: str
    user: str
    password: str
    error: Exception | None
    is_closed: bool = False
    watches: int = 0

    @property
    def cluster(self) -> "FakeViewer":
        return self

    def reach(self, timeout_ms: int) -> None:
        if self.error is not None:
            raise self.error

    def watch(self) -> None:
        self.watches += 1

    def close(self) -> None:
        self.is_closed = True


@dataclass
class World:
    """A clock, and brokers that take these passwords by these mechanisms."""

    now_ms: int = 0
    passwords: dict[tuple[str, str], str] = field(default_factory=dict)
    is_away: bool = False
    is_trusted: bool = True
    made: list[FakeViewer] = field(default_factory=list)

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return self.now_ms

    def make(self, mechanism: str, user: str, password: str) -> FakeViewer:
        error: Exception | None = None
        if self.is_away:
            error = ClusterUnavailable("no broker answers")
        elif not self.is_trusted:
            error = SecurityRefused("the broker's certificate is of an authority that is not trusted")
        elif self.passwords.get((mechanism, user)) != password:
            error = LoginDenied("the login is refused")
        self.made.append(FakeViewer(mechanism, user, password, error))
        return self.made[-1]


@pytest.fixture
def world() -> World:
    return World(passwords={("SCRAM-SHA-512", "alice"): "secret", ("PLAIN", "admin"): "root"})


@pytest.fixture
def logins(world: World) -> Any:
    return PageLogins(world.make, ["SCRAM-SHA-512", "PLAIN"], world)  # type: ignore[arg-type]


def test_brokers_that_are_not_trusted_are_no_reason_to_ask_for_a_password_again(
    logins: Any, world: World
) -> None:
    world.is_trusted = False
    with pytest.raises(SecurityRefused, match="an authority that is not trusted"):
        logins.viewer(basic("alice", "secret"))
    assert len(world.made) == 1, "another mechanism mends nothing"
    assert world.made[0].is_closed


def test_a_user_logs_in_once_and_is_known_by_name_and_password(logins: Any, world: World) -> None:
    first = logins.viewer(basic("alice", "secret"))
    assert logins.viewer(basic("alice", "secret")) is first
    assert (len(world.made), first.watches) == (1, 1)
    with pytest.raises(NeedsLogin, match="do not let 'alice' log in"):
        logins.viewer(basic("alice", "wrong"))
    assert logins.viewer(basic("alice", "secret")) is first
    assert [one.is_closed for one in world.made] == [False, True, True]


def test_each_mechanism_of_the_listener_is_tried(logins: Any) -> None:
    assert logins.viewer(basic("admin", "root")).mechanism == "PLAIN"


def encoded(data: bytes) -> str:
    return "Basic " + base64.b64encode(data).decode()


NAMELESS = [
    None,
    "",
    "Bearer abc",
    "Basic",
    "Basic !!!",
    encoded(b"nocolon"),
    encoded(b":pw"),
    encoded(b"\xff:x"),
]


@pytest.mark.parametrize("header", [*NAMELESS, basic("u", "x" * 1_025)])
def test_a_header_without_a_user_asks_no_broker(logins: Any, world: World, header: str | None) -> None:
    with pytest.raises(NeedsLogin):
        logins.viewer(header)
    assert world.made == []


def test_whoever_does_not_ask_for_ten_minutes_is_forgotten(logins: Any, world: World) -> None:
    first = logins.viewer(basic("alice", "secret"))
    world.now_ms = UNUSED_MAX_MS
    assert logins.viewer(basic("alice", "secret")) is first
    world.now_ms = 2 * UNUSED_MAX_MS + 1
    assert logins.viewer(basic("alice", "secret")) is not first
    assert first.is_closed


def test_of_many_users_the_ones_who_asked_last_are_kept(logins: Any, world: World) -> None:
    for number in range(VIEWERS_MAX + 2):
        world.passwords["PLAIN", f"u{number}"] = "p"
    first = logins.viewer(basic("u0", "p"))
    second = logins.viewer(basic("u1", "p"))
    for number in range(2, VIEWERS_MAX + 1):
        logins.viewer(basic("u0", "p"))
        logins.viewer(basic(f"u{number}", "p"))
    assert (first.is_closed, second.is_closed) == (False, True)
    assert logins.last_used().user == f"u{VIEWERS_MAX}"


def test_a_login_that_does_not_hold_any_more_is_asked_for_anew(logins: Any, world: World) -> None:
    viewer = logins.viewer(basic("alice", "secret"))
    world.passwords["SCRAM-SHA-512", "alice"] = "changed"
    logins.forget(viewer)
    assert viewer.is_closed
    with pytest.raises(NeedsLogin):
        logins.viewer(basic("alice", "secret"))
    assert logins.viewer(basic("alice", "changed")).password == "changed"


def test_brokers_that_do_not_answer_are_no_wrong_password(logins: Any, world: World) -> None:
    world.is_away = True
    with pytest.raises(ClusterUnavailable):
        logins.viewer(basic("alice", "secret"))
    assert world.made[-1].is_closed
    assert logins.last_used() is None
