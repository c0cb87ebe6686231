"""Write docs/images: the page as people see it, over a cluster of real processes with some traffic.

    python -m tests.page.screenshots docs/images     (make screenshots)

Look at each of them afterwards: that a picture is made says nothing of what is on it.
"""

import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from sparklog.client.admin import Admin, NewTopic
from tests.page.conftest import CHROMIUM, StartedCluster

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


def produce_for(cluster: StartedCluster, seconds: float) -> None:
    stopped = threading.Event()
    timer = threading.Timer(seconds, stopped.set)
    timer.start()
    number = 0
    while not stopped.wait(0.5):
        number += 1
        cluster.produce(
            "payments", [(f"p{number}-{one}", f"paid {one}" * (1 + number % 7)) for one in range(40)]
        )


def shoot(browser: Any, url: str, path: Path, *, scheme: str, size: dict[str, int], whole: bool) -> None:
    context = browser.new_context(viewport=size, color_scheme=scheme, device_scale_factor=1)
    tab = context.new_page()
    tab.goto(url)
    tab.locator("main h1").first.wait_for()
    tab.wait_for_timeout(1_500)  # bars and plots are drawn after the heading
    tab.screenshot(path=path, full_page=whole)
    context.close()
    print(path, path.stat().st_size // 1_024, "KB")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as root, sync_playwright() as playwright:
        cluster = StartedCluster(Path(root) / "cluster")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            produce_for(cluster, TRAFFIC_S)
            for name, path in VIEWS.items():
                for scheme in ("light", "dark"):
                    shoot(
                        browser,
                        cluster.url + path,
                        folder / f"{name}-{scheme}.png",
                        scheme=scheme,
                        size=WIDE,
                        whole=False,
                    )
                shoot(
                    browser,
                    cluster.url + path,
                    folder / f"{name}-360px.png",
                    scheme="light",
                    size=TELEPHONE,
                    whole=False,
                )
            topics = [NewTopic(name=f"sensor-{one:03}", partitions=10) for one in range(PARTITIONS // 10)]
            Admin(cluster.client).create_topics(topics)
            for name in ("overview", "topics", "broker"):
                shoot(
                    browser,
                    cluster.url + VIEWS[name],
                    folder / f"{name}-1000.png",
                    scheme="light",
                    size=WIDE,
                    whole=False,
                )
        finally:
            browser.close()
            cluster.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
