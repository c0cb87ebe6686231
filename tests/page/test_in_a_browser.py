"""The page in a real browser, over a real cluster: views, clicks, searches, and live changes."""

import os
import re
import signal
from typing import Any

import pytest

from tests.page.conftest import HOSTILE, StartedCluster

pytestmark = [pytest.mark.page, pytest.mark.integration, pytest.mark.timeout(180, func_only=True)]

VIEWS = [
    ("", r"^(Well|Serving)"),
    ("brokers", "^Brokers$"),
    ("brokers/1", "^Broker 1$"),
    ("topics", "^Topics$"),
    ("topics/flights", "^flights$"),
    ("topics/flights/records", "^Records of"),
    ("topics/odd/records", "^Records of"),
    ("groups", "^Groups and queries$"),
    ("groups?group=billing", "^billing$"),
    ("events", "^Events$"),
    ("operations", "^Operations$"),
    ("doctor", "^Doctor$"),
]
SOON_MS = 30_000
OVERFLOWING = "[...document.querySelectorAll('{}')].filter((one) => one.scrollWidth > one.clientWidth).length"


def heading(page: Any) -> Any:
    return page.locator("main h1").first


def wait_for_heading(page: Any, pattern: str, timeout_ms: int = SOON_MS) -> None:
    """Under the page's policy no script of ours may wait in it: a locator does."""
    page.locator("main h1", has_text=re.compile(pattern)).first.wait_for(timeout=timeout_ms)


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
def test_each_view_opens_and_an_examiner_for_people_with_handicaps_finds_nothing(
    page: Any, cluster: StartedCluster, well: None
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for path, pattern in VIEWS:
        page.goto(cluster.url + path)
        wait_for_heading(page, pattern)
        found = axe.run(page).response["violations"]
        grave = [
            (path, one["id"], [node["html"][:200] for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert grave == []


def test_nothing_is_cut_on_a_screen_of_1300_pixels(page: Any, cluster: StartedCluster) -> None:
    page.set_viewport_size({"width": 1300, "height": 900})
    page.goto(cluster.url + "brokers")
    page.locator("tbody tr", has_text="broker 3").wait_for(timeout=SOON_MS)
    assert page.evaluate(OVERFLOWING.format(".scroll")) == 0
    page.goto(cluster.url + "topics/old/records")
    page.locator(".record .when", has_text="2018-02-0").first.wait_for(timeout=SOON_MS)
    assert page.evaluate(OVERFLOWING.format(".record .when")) == 0
    page.goto(cluster.url + "brokers/1")
    page.locator(".plot canvas").first.wait_for(timeout=SOON_MS)
    assert page.evaluate(OVERFLOWING.format(".plot")) == 0


def test_each_view_fits_a_telephone(page: Any, cluster: StartedCluster) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    for path, pattern in VIEWS:
        page.goto(cluster.url + path)
        wait_for_heading(page, pattern)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


def test_a_stranger_finds_a_record_by_clicks_alone(page: Any) -> None:
    wait_for_heading(page, ".")
    page.get_by_role("link", name="Topics", exact=True).click()
    page.get_by_role("link", name="flights", exact=True).click()
    page.get_by_role("link", name="Records →").click()
    page.get_by_label("Text in key, value or header").fill("LH377")
    record = page.locator(".record")
    page.locator(".progress", has_text="Found 1 record").wait_for(timeout=SOON_MS)
    record.first.click()
    page.locator(".record pre", has_text='"flight": 377').wait_for()
    assert page.url.endswith("/topics/flights/records?text=LH377")
    with page.expect_download() as download:
        page.locator(".record").get_by_role("link", name="Download").first.click()
    assert download.value.suggested_filename.endswith(".key")
    page.go_back()
    wait_for_heading(page, "^flights$")


def test_a_look_from_a_time_says_that_the_time_is_missing_or_too_late(
    page: Any, cluster: StartedCluster
) -> None:
    page.goto(cluster.url + "topics/flights/records?from=time")
    progress = page.locator(".progress")
    progress.get_by_text("A time is missing").wait_for(timeout=SOON_MS)
    page.get_by_label("Time (local)").fill("2099-12-31T23:59:59")
    progress.get_by_text("No record is as late as that.").wait_for(timeout=SOON_MS)
    page.get_by_label("Time (local)").fill("2001-01-01T00:00:00")
    progress.get_by_text("50 records, the oldest first; at most 350 more.").wait_for(timeout=SOON_MS)
    assert page.locator(".record").count() == 50


def test_a_table_is_sorted_and_the_order_is_in_the_url(page: Any, cluster: StartedCluster) -> None:
    page.goto(cluster.url + "topics")
    page.get_by_role("button", name="Partitions").click()
    page.locator("th[aria-sort=descending]", has_text="Partitions").wait_for()
    assert "sort=partitions" in page.url
    assert page.locator("tbody tr td:first-child").first.inner_text() == "payments"
    page.reload()
    page.locator("th[aria-sort=descending]", has_text="Partitions").wait_for()


def test_it_is_worked_by_keys_alone(page: Any) -> None:
    wait_for_heading(page, ".")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the view"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "view"
    page.get_by_role("link", name="Groups", exact=True).focus()
    page.keyboard.press("Enter")
    wait_for_heading(page, "^Groups and queries$")


def test_words_of_kafka_and_figures_that_look_like_an_alarm_are_explained(
    page: Any, cluster: StartedCluster
) -> None:
    page.goto(cluster.url + "groups?group=reports")
    page.locator(".title", has_text="Empty").get_by_text("queries read without joining").wait_for(
        timeout=SOON_MS
    )
    page.goto(cluster.url + "groups?group=billing")
    page.locator(".title", has_text="Empty").get_by_text("no member now").wait_for(timeout=SOON_MS)
    page.goto(cluster.url + "topics/flights")
    page.locator("tr", has_text="reports").get_by_text("queries read without joining").wait_for(
        timeout=SOON_MS
    )
    page.goto(cluster.url + "brokers/1")
    page.get_by_text("started again 0 times, by whomever").wait_for(timeout=SOON_MS)
    page.get_by_text("reads with their wait for records").first.wait_for(timeout=SOON_MS)


def test_what_strangers_wrote_stays_text(page: Any, cluster: StartedCluster) -> None:
    page.goto(cluster.url + "topics/odd/records?from=oldest")
    page.locator(".record .key", has_text="<script>alert(1)</script>").wait_for(timeout=SOON_MS)
    page.locator(".record").first.click()
    assert page.locator(".record pre").first.inner_text() == HOSTILE
    page.goto(cluster.url + "groups")
    page.get_by_role("link", name="a/../<script>").click()
    wait_for_heading(page, r"^a/\.\./<script>")
    assert page.locator("main script").count() == 0


def test_new_records_appear_while_somebody_looks(page: Any, cluster: StartedCluster) -> None:
    page.goto(cluster.url + "topics/payments/records?live=true")
    page.locator(".progress", has_text="Live").wait_for(timeout=SOON_MS)
    cluster.produce("payments", [("p1", "just now")])
    page.locator(".record", has_text="just now").wait_for(timeout=SOON_MS)


def test_a_broker_that_dies_is_seen_to_die_and_to_return(
    page: Any, cluster: StartedCluster, well: None
) -> None:
    wait_for_heading(page, "^Well: 3 brokers")
    cluster.kill_broker(2)
    page.locator(".events", has_text="broker 2").wait_for(timeout=SOON_MS)
    page.locator(".events", has_text=re.compile("broker 2 .* died")).wait_for(timeout=SOON_MS)
    wait_for_heading(page, "^Well: 3 brokers", 90_000)
    page.goto(cluster.url + "brokers/2")
    page.locator(".state", has_text="serving").first.wait_for(timeout=SOON_MS)


def test_the_pages_process_ends_and_the_next_one_goes_on(
    page: Any, cluster: StartedCluster, well: None
) -> None:
    wait_for_heading(page, ".")
    pids = [
        int(entry)
        for entry in os.listdir("/proc")
        if entry.isdigit()
        and b"sparklog.web.page_process" in _command_line(entry)
        and str(cluster.root).encode() in _environment(entry)
    ]
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    page.get_by_role("link", name="Brokers", exact=True).click()
    wait_for_heading(page, "^Brokers$")
    page.watched.errors.clear()  # the browser names the connection that ended


def _command_line(entry: str) -> bytes:
    try:
        with open(f"/proc/{entry}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _environment(entry: str) -> bytes:
    try:
        with open(f"/proc/{entry}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_when_the_driver_dies_the_page_says_since_when_nothing_is_new(
    chromium: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster = StartedCluster(tmp_path_factory.mktemp("dying"))
    try:
        tab = chromium.new_page()
        tab.goto(cluster.url)
        wait_for_heading(tab, ".")
        cluster.process.kill()
        tab.locator("#silence", has_text="This page's process has not answered since").wait_for(
            timeout=SOON_MS
        )
        assert heading(tab).is_visible()
        tab.close()
    finally:
        cluster.stop()
