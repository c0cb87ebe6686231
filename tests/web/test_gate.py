"""What a request must be before the page answers it, and what protects the answer in a browser."""

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from sparklog.web.gate import Gate
from sparklog.web.page_settings import PageSettings

SETTINGS = PageSettings(allowed_hosts=("logs.example.org", "10.0.0.7"))


@pytest.fixture
def browser() -> TestClient:
    return TestClient(Gate(PlainTextResponse("here"), SETTINGS), base_url="http://127.0.0.1:9480")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
def test_the_page_only_reads(browser: TestClient, method: str) -> None:
    refused = browser.request(method, "/api/brokers")
    assert refused.status_code == 405
    assert refused.headers["allow"] == "GET"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:9480",
        "localhost",
        "LOCALHOST:1",
        "[::1]:9480",
        "logs.example.org",
        "logs.example.org.:80",
        "10.0.0.7",
    ],
)
def test_a_host_by_which_the_page_is_known_is_answered(browser: TestClient, host: str) -> None:
    assert browser.get("/", headers={"Host": host}).text == "here"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "[::2]",
        "logs.example.org@evil",
    ],
)
def test_a_foreign_host_is_refused_with_the_setting_that_would_allow_it(
    browser: TestClient, host: str
) -> None:
    refused = browser.get("/api/", headers={"Host": host})
    assert refused.status_code == 421
    assert "web.allowed.hosts" in refused.json()["error"]
    assert repr(host) in refused.json()["error"]


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
@pytest.mark.parametrize("path", ["/api/topics", "/static/main.js", "/metrics", "/brokers"])
def test_a_request_of_another_site_gets_no_data(browser: TestClient, site: str, path: str) -> None:
    assert browser.get(path, headers={"Sec-Fetch-Site": site}).status_code == 403


def test_a_link_of_another_site_leads_to_a_view_and_to_no_data(browser: TestClient) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert browser.get("/brokers", headers=link).status_code == 200
    assert browser.get("/api/brokers", headers=link).status_code == 403
    assert browser.get("/brokers", headers=link | {"Sec-Fetch-Dest": "iframe"}).status_code == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_the_page_itself_and_a_bookmark_are_answered(browser: TestClient, site: str) -> None:
    assert browser.get("/api/", headers={"Sec-Fetch-Site": site}).status_code == 200


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_whoever_watches_processes_may_ask_from_elsewhere(browser: TestClient, path: str) -> None:
    assert browser.get(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_each_answer_and_each_refusal_forbids_frames_foreign_scripts_and_guesses_of_types(
    browser: TestClient,
) -> None:
    for answer in (browser.get("/"), browser.post("/"), browser.get("/", headers={"Host": "evil.example"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
