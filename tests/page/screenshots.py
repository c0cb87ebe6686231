"""Write docs/images: the page as people see it, over three brokers with some traffic.

    python -m tests.page.screenshots docs/images     (make screenshots)

Look at each of them afterwards: that a picture is made says nothing of what is on it. Brokers and page are in
this process, because pictures need no more; tests/page has the real ones.
"""

import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from sparklog.client.coordinator import Coordinator
from sparklog.client.group.committed_offsets import commit_offsets
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from sparklog.web.command import listening_at
from sparklog.web.page_app import build_app
from sparklog.web.page_settings import PageSettings
from sparklog.web.page_viewers import OneViewer
from sparklog.web.serving import PageServer
from sparklog.web.viewer import Viewer

CHROMIUM = shutil.which("chromium") or ""
WIDE = {"width": 1280, "height": 900}
TELEPHONE = {"width": 360, "height": 740}
TRAFFIC_S = 75.0
"""As long as plots need to be plots."""
PARTITIONS = 1_000

VIEWS = {
    "overview": "",
    "broker": "brokers/1",
    "topics": "topics",
    "topic": "topics/flights",
    "records": "topics/flights/records?from=newest",
    "groups": "groups",
}


@contextmanager
def page_of(cluster: InProcessCluster) -> Iterator[str]:
    """The address of a page of this cluster."""
    viewer = Viewer(cluster.client, options="--root DIR")
    viewer.watch()
    server = PageServer(build_app(OneViewer(viewer), PageSettings()))
    with listening_at("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.serve, args=(listening,))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        server.stop()
        thread.join()


def fill(cluster: InProcessCluster) -> None:
    cluster.create_topic("flights", partitions=6)
    cluster.create_topic("payments", partitions=12)
    flights = [(f"LH{one}", json.dumps({"flight": one, "from": "FRA", "to": "JFK"})) for one in range(400)]
    cluster.produce("flights", flights)
    commit_offsets(Coordinator(cluster.client, "billing"), {TopicPartition("flights", 0): 3})
    commit_offsets(Coordinator(cluster.client, "dashboards"), {TopicPartition("payments", 1): 0})
    ends = time.monotonic() + TRAFFIC_S
    number = 0
    while time.monotonic() < ends:
        number += 1
        paid = [(f"p{number}-{one}", f"paid {one} " * (1 + number % 7)) for one in range(40)]
        cluster.produce("payments", paid)
        cluster.consume("flights", at_least=400)
        time.sleep(0.3)


def shoot(browser: Any, url: str, path: Path, scheme: str, size: dict[str, int]) -> None:
    context = browser.new_context(viewport=size, color_scheme=scheme)
    tab = context.new_page()
    tab.goto(url)
    tab.locator("main h1").first.wait_for()
    tab.wait_for_timeout(1_500)  # plots are drawn after the heading
    tab.screenshot(path=path, full_page=size is WIDE and "1000" not in path.name)
    context.close()
    print(path, path.stat().st_size // 1_024, "KB", flush=True)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with InProcessCluster(brokers=3) as cluster, page_of(cluster) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        fill(cluster)
        for name, path in VIEWS.items():
            for scheme in ("light", "dark"):
                shoot(browser, url + path, folder / f"{name}-{scheme}.png", scheme, WIDE)
            shoot(browser, url + path, folder / f"{name}-360px.png", "light", TELEPHONE)
        for number in range(PARTITIONS // 10):
            cluster.create_topic(f"sensor-{number:03}", partitions=10, replication_factor=1)
        for name in ("overview", "topics", "broker"):
            shoot(browser, url + VIEWS[name], folder / f"{name}-1000-partitions.png", "light", WIDE)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
