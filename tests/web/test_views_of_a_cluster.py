"""What the views say of real brokers."""

import os
import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from sparklog.client.cluster_reports import operate_brokers
from sparklog.testing import InProcessCluster
from sparklog.web.page_app import STATIC, VIEWS
from sparklog.wire.messages.admin.operate_brokers import OperateBrokersRequest
from tests.waiting import until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", autouse=True)
def topics(cluster: InProcessCluster) -> None:
    for number in range(3):
        cluster.create_topic(f"orders-{number}", partitions=number + 1)
    cluster.produce("orders-2", [(f"k{number}", "x" * 100) for number in range(50)])


def test_the_overview_says_first_that_all_is_well(ask: Any) -> None:
    found = ask("/")
    assert re.fullmatch(r"Well: 3 brokers, \d+ partitions led and in sync\.", found["verdict"]["sentence"])
    assert found["brokers"] == {"total": 3, "serving": 3}
    assert found["fullest_disk"]["total_bytes"] > 0
    assert found["events"][0]["words"].startswith("topic orders-2 is created")


def test_brokers_have_their_state_their_partitions_and_their_disks(ask: Any) -> None:
    found = ask("/brokers")["brokers"]
    assert [(one["broker_id"], one["state"]) for one in found] == [
        (1, "serving"),
        (2, "serving"),
        (3, "serving"),
    ]
    assert sum(one["leaders"] for one in found) == 6
    assert all(one["in_sync"] == one["replicas"] == 6 for one in found)
    assert sum(one["log_bytes"] for one in found) > 3 * 50 * 100


def test_one_broker_shows_directories_settings_of_its_own_and_its_events(ask: Any) -> None:
    found = ask("/brokers/2")
    assert found["broker"]["broker_id"] == 2
    assert [one["replicas"] for one in found["log_dirs"]] == [6]
    assert {"name": "broker.id", "value": "2", "source": "static broker"} in found["settings"]
    assert [event["words"] for event in found["events"]] == ["broker 2 on 127.0.0.1 serves"]
    process = found["process"]
    assert process["pid"] == os.getpid()
    assert process["memory_bytes"] > 0
    assert 0 < process["open_files"] < process["open_files_max"]
    assert found["warnings"]["total"] >= len(found["warnings"]["rows"])


def test_figures_are_those_of_the_hour_before_the_page_was_opened(
    ask: Any, cluster: InProcessCluster
) -> None:
    for server in cluster.brokers.values():
        server.process._own_report._sampler.sample()
    figures = ask("/brokers/2")["figures"]
    assert len(figures["times_ms"]) == len(figures["memory_bytes"]) >= 1
    newest = figures["times_ms"][-1]
    assert newest not in ask(f"/brokers/2?after={newest}")["figures"]["times_ms"]
    assert "from -1 to" in ask("/brokers/2?after=-7", 400)["error"]
    assert set(ask("/")["figures"]) == {
        *("times_ms", "produced_bytes_per_s", "fetched_bytes_per_s"),
        *("produced_records_per_s", "fetched_records_per_s", "produce_p99_ms"),
    }


def test_a_broker_that_never_registered_is_not_there(ask: Any) -> None:
    assert ask("/brokers/99", 404) == {"error": "no broker 99 has registered"}
    assert ask("/brokers/three", 400) == {"error": "broker='three' is no whole number"}


def test_topics_are_searched_and_sorted_by_the_server(ask: Any) -> None:
    assert [row["name"] for row in ask("/topics?search=ORDERS")["rows"]] == [
        "orders-0",
        "orders-1",
        "orders-2",
    ]
    assert [row["name"] for row in ask("/topics?search=orders-1")["rows"]] == ["orders-1"]
    by_size = ask("/topics?sort=size&descending=true")["rows"]
    assert by_size[0]["name"] == "orders-2"
    assert by_size[0]["size_bytes"] > 5_000
    assert [row["partitions"] for row in ask("/topics?sort=partitions")["rows"]] == [1, 2, 3]
    assert "'weight'" in ask("/topics?sort=weight", 400)["error"]


def test_events_are_chosen_by_kind_broker_and_words(ask: Any) -> None:
    assert {event["kind"] for event in ask("/events?kind=topic")["rows"]} == {"topic"}
    assert [event["brokers"] for event in ask("/events?broker=3&kind=broker")["rows"]] == [[3]]
    assert len(ask("/events?search=orders-1")["rows"]) == 1


def test_nothing_moves(ask: Any) -> None:
    found = ask("/operations")
    assert (found["rows"], found["total"], found["moving"], found["operations"]) == ([], 0, 0, [])


def test_an_operation_on_brokers_says_what_it_waits_for_and_is_kept_when_it_ends(
    ask: Any, cluster: InProcessCluster
) -> None:
    request = OperateBrokersRequest(action="restart", brokers=[2, 1], request="a")
    begun = operate_brokers(cluster.client, request, timeout_ms=30_000).operation
    until(lambda: ask("/operations")["operations"], "the page shows the operation")
    found = ask("/operations")
    (shown,) = found["operations"]
    assert (shown["id"], shown["kind"], shown["state"]) == (begun, "restart", "running")
    assert (shown["now"], shown["then"], shown["done"], shown["total"]) == (2, [1], 0, 2)
    assert shown["waiting_for"] == ["broker 2 runs, and no application says that it hosts it"]
    assert f"sparklog brokers cancel {begun} --root /data" in [one["command"] for one in found["commands"]]
    cancelled = OperateBrokersRequest(action="cancel", operation=begun)
    operate_brokers(cluster.client, cancelled, timeout_ms=30_000)
    until(lambda: ask("/operations")["operations"][0]["state"] == "cancelled", "the operation ends")
    assert [one["does"] for one in ask("/operations")["commands"]] == ["On a terminal"]


def test_the_doctor_finds_what_the_command_finds(ask: Any) -> None:
    found = ask("/doctor")
    severities = {one["check"]: one["severity"] for one in found["findings"]}
    assert (severities["brokers"], severities["isr"], severities["zookeeper"]) == ("ok", "ok", "note")
    assert found["counts"]["ok"] == sum(one["severity"] == "ok" for one in found["findings"])
    assert found["commands"][0]["command"].startswith("sparklog doctor --")


def test_who_watches_processes_gets_numbers_and_no_names(browser: TestClient) -> None:
    assert browser.get("/health").status_code == 200
    ready = browser.get("/ready")
    assert (ready.status_code, ready.text) == (200, "6 partitions led\n")


@pytest.mark.parametrize(
    "path", ["/", "/brokers", "/brokers/1", "/topics", "/events", "/operations", "/doctor"]
)
def test_each_view_is_the_page_with_a_base_that_leads_to_its_parts(browser: TestClient, path: str) -> None:
    page = browser.get(path)
    assert page.headers["content-type"].startswith("text/html")
    base = re.search(r'<base href="([^"]*)">', page.text)
    assert base is not None
    for part in re.findall(r'(?:src|href)="(static/[^"]+)"', page.text):
        assert browser.get(f"{path}/../{base[1]}{part}" if path != "/" else f"/{part}").status_code == 200


def test_what_is_no_view_is_not_there(browser: TestClient, ask: Any) -> None:
    assert browser.get("/nothing").status_code == 404
    assert "no such view" in ask("/nothing", 404)["error"]
    assert browser.get("/static/../app.py").status_code == 404
    assert browser.get("/static/%2e%2e/app.py").status_code == 404


def test_each_view_of_the_server_is_one_of_the_browser() -> None:
    table = (STATIC / "views.js").read_text(encoding="utf-8")
    patterns = [re.compile(found.replace(r"\/", "/")) for found in re.findall(r"pattern: /(\S+)/ ", table)]
    for path in VIEWS:
        asked = re.sub(r"\{\w+\}", "x", path).removeprefix("/")
        assert any(pattern.fullmatch(asked) for pattern in patterns), path


def test_the_page_needs_nothing_from_elsewhere() -> None:
    for part in STATIC.rglob("*"):
        if part.suffix in {".js", ".css", ".html"} and "uplot" not in part.parts:
            text = part.read_text(encoding="utf-8")
            assert not re.search(r"(?:src|href|url|fetch|import)\s*[=(]?\s*[\"'(]+(?:https?:)?//", text), part
            assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(|style=", text), part


def test_a_broker_that_dies_is_named_until_it_returns(ask: Any, cluster: InProcessCluster) -> None:
    cluster.kill(3)
    cluster.wait_for_isr("orders-2", 2)
    until(lambda: ask("/")["verdict"]["level"] == "warning", "the page names the dead broker")
    found = ask("/")
    assert "broker 3" in found["verdict"]["findings"][0]["words"]
    assert found["verdict"]["findings"][0]["view"] == "brokers/3"
    assert [row["name"] for row in ask("/topics?only=unwell")["rows"]] == ["orders-0", "orders-1", "orders-2"]
    assert ask("/brokers/3")["log_dirs"] == []
    assert ask("/brokers/3")["process"] is None
    cluster.revive(3)
    cluster.wait_for_isr("orders-2", 3)
    for name in ("orders-0", "orders-1"):
        cluster.wait_for_isr(name, 3)
    until(lambda: ask("/")["verdict"]["level"] == "well", "the page says that all is well")
