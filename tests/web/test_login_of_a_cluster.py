"""The page of a secured cluster: users see what they may see, and nobody sees anything without a login."""

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from sparklog.client.cluster import ClusterClient
from sparklog.client.security.connecting import connector_as
from sparklog.network.clock import SystemClock
from sparklog.testing import InProcessCluster
from sparklog.web.page_app import build_app
from sparklog.web.page_logins import PageLogins
from sparklog.web.page_settings import PageSettings
from sparklog.web.page_viewers import ViewersWhoLogIn
from sparklog.web.viewer import Viewer
from tests.certificates import Authority
from tests.closed_files import write_closed

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def secured() -> Iterator[InProcessCluster]:
    with InProcessCluster(brokers=1, secure=True) as cluster:
        cluster.create_topic("open-to-alice")
        cluster.create_topic("closed")
        cluster.as_user("alice")
        cluster.as_user("bob")
        cluster.allow("alice", "read", "describe", topic="open-to-alice")
        yield cluster


@pytest.fixture
def logins(secured: InProcessCluster) -> Iterator[PageLogins]:
    logins = logins_of(secured)
    yield logins
    logins.close()


def logins_of(secured: InProcessCluster, **other: str) -> PageLogins:
    trust = {
        name: text
        for name, text in secured.as_user("alice").properties.items()
        if not name.startswith("sasl.")
    }
    trust.update({f"ssl.truststore.{name}": text for name, text in other.items()})

    def make(mechanism: str, user: str, password: str) -> Viewer:
        connector = connector_as(trust, mechanism, user, password)
        return Viewer(
            ClusterClient(secured.bootstrap_servers, connector=connector), options="", connector=connector
        )

    return PageLogins(make, ["SCRAM-SHA-512", "PLAIN"], SystemClock())


@pytest.fixture
def browser(logins: PageLogins) -> TestClient:
    return TestClient(build_app(ViewersWhoLogIn(logins), PageSettings()), base_url="http://localhost")


def password_of(secured: InProcessCluster, name: str) -> str:
    found = re.search(r'password="([^"]+)"', secured.as_user(name).properties["sasl.jaas.config"])
    assert found is not None
    return found[1]


def header(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    "path", ["/", "/topics", "/metrics", "/api/", "/api/topics", "/api/topics/closed/records", "/api/groups"]
)
def test_nobody_sees_anything_without_a_login(browser: TestClient, path: str) -> None:
    refused = browser.get(path)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == 'Basic realm="sparklog", charset="UTF-8"'
    assert "closed" not in refused.text


def test_a_wrong_password_is_refused_and_not_repeated(browser: TestClient) -> None:
    refused = browser.get("/api/topics", headers=header("alice", "guessed-it"))
    assert refused.status_code == 401
    assert "guessed-it" not in refused.text


def test_brokers_without_the_pages_trust_are_named_and_no_password_is_asked_for(
    secured: InProcessCluster, tmp_path: Path
) -> None:
    logins = logins_of(secured, location=str(Authority(tmp_path).file))
    browser = TestClient(build_app(ViewersWhoLogIn(logins), PageSettings()), base_url="http://localhost")
    alice = header("alice", password_of(secured, "alice"))
    assert browser.get("/topics", headers=alice).status_code == 200, "the page itself, which says why"
    refused = browser.get("/api/topics", headers=alice)
    assert refused.status_code == 503
    assert "www-authenticate" not in refused.headers
    assert "certificate" in refused.json()["error"]


def test_a_user_sees_what_that_user_may_see(browser: TestClient, secured: InProcessCluster) -> None:
    alice = header("alice", password_of(secured, "alice"))
    rows = browser.get("/api/topics", headers=alice).json()["rows"]
    assert [row["name"] for row in rows] == ["open-to-alice"]
    assert browser.get("/api/topics/open-to-alice", headers=alice).json()["partitions"] == 1
    assert browser.get("/api/topics/open-to-alice/records", headers=alice).status_code == 200
    assert browser.get("/api/topics/closed/records", headers=alice).status_code in (403, 404)
    bob = header("bob", password_of(secured, "bob"))
    assert browser.get("/api/topics", headers=bob).json()["rows"] == []
    assert browser.get("/api/brokers", headers=bob).status_code == 403
    assert browser.get("/metrics", headers=bob).status_code == 403


def test_a_reference_in_a_password_reads_no_file_of_ours(
    browser: TestClient, secured: InProcessCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger would log in with a secret that only the driver's host has."""
    secret = tmp_path / "secret.properties"
    write_closed(secret, f"alice={password_of(secured, 'alice')}\n")
    monkeypatch.setenv("PAGE_TESTS_ALICE", password_of(secured, "alice"))
    for reference in (f"${{file:{secret}:alice}}", "${env:PAGE_TESTS_ALICE}"):
        assert browser.get("/api/topics", headers=header("alice", reference)).status_code == 401
    assert os.environ["PAGE_TESTS_ALICE"]


def test_what_watches_processes_needs_no_user(browser: TestClient, secured: InProcessCluster) -> None:
    assert browser.get("/health").status_code == 200
    assert browser.get("/ready").text == "not known before somebody has logged in\n"
    browser.get("/api/topics", headers=header("alice", password_of(secured, "alice")))
    assert browser.get("/ready").status_code in (200, 503)
