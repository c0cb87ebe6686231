"""A cluster of real processes with a page, and a browser that must meet no error and ask nobody else."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sparklog.client.admin import Admin, NewTopic
from sparklog.client.cluster import ClusterClient
from sparklog.client.coordinator import Coordinator
from sparklog.client.group.committed_offsets import commit_offsets
from sparklog.client.records_producer import Producer
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from tests.waiting import until

CHROMIUM = shutil.which("chromium") or ""
CREATE_TIMEOUT_MS = 60_000
HOSTILE = "<script>alert(1)</script>\"'&\u202egnp.exe"


class StartedCluster:
    """``sparklog start`` with three brokers, and topics that a person would look at."""

    def __init__(self, root: Path) -> None:
        self.root = root
        command = [
            sys.executable,
            "-m",
            "sparklog",
            "start",
            "--brokers",
            "3",
            "--port",
            "0",
            "--root",
            str(root),
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        try:
            assert self.process.stdout.readline().startswith("sparklog is ready")
            self.client = ClusterClient(self.described()["bootstrap_servers"])
            self.fill()
        except BaseException:
            self.end()
            raise

    def described(self) -> Any:
        return json.loads((self.root / "cluster.json").read_text())

    @property
    def url(self) -> str:
        return str(self.described()["controllers"][0]["web_url"])

    def fill(self) -> None:
        for name, count in (("flights", 6), ("payments", 12), ("odd", 1)):
            until(partial(self.create, NewTopic(name=name, partitions=count)), f"a topic {name}")
        self.produce(
            "flights", [(f"LH{one}", json.dumps({"flight": one, "to": "JFK"})) for one in range(400)]
        )
        until(partial(self.create, NewTopic(name="old", partitions=1)), "a topic old")
        with Producer(self.client) as producer:
            producer.send("old", b"of another day", timestamp_ms=1_517_445_193_000)
        self.produce("odd", [(HOSTILE, HOSTILE), ("long", "x" * 900_000)])
        commit_offsets(Coordinator(self.client, "billing"), {TopicPartition("flights", 0): 3})
        commit_offsets(
            Coordinator(self.client, "reports"),
            {TopicPartition("flights", 1): 3},
            metadata=json.dumps({"name": "reports", "id": "7f", "run": "1", "batch": 4}),
        )
        commit_offsets(Coordinator(self.client, f"a/../{HOSTILE}"), {TopicPartition("odd", 0): 2})

    def create(self, topic: NewTopic) -> bool:
        """A machine with much to do may be late with an answer: the topic may be there all the same."""
        try:
            Admin(self.client).create_topics([topic], timeout_ms=CREATE_TIMEOUT_MS)
        except KafkaError as error:
            if error.code is not ErrorCode.topic_already_exists and not error.code.retriable:
                raise
            return error.code is ErrorCode.topic_already_exists
        return True

    def produce(self, topic: str, records: list[tuple[str, str]]) -> None:
        with Producer(self.client) as producer:
            for key, value in records:
                producer.send(topic, value.encode(), key=key.encode())

    def kill_broker(self, broker_id: int) -> None:
        (pid,) = [one["pid"] for one in self.described()["brokers"] if one["id"] == broker_id]
        os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        self.client.close()
        self.end()

    def end(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=90)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartedCluster]:
    cluster = StartedCluster(tmp_path_factory.mktemp("page"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="make page sets it up")
    if not CHROMIUM:
        pytest.skip("no chromium here: sudo apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """What a browser met that it must not meet."""

    def __init__(self, url: str) -> None:
        self.origin = urlsplit(url).netloc
        self.errors: list[str] = []

    def follow(self, page: Any) -> None:
        page.on("console", lambda message: self._note(message.type in ("error", "warning"), message.text))
        page.on("pageerror", lambda error: self._note(True, str(error)))
        page.on(
            "request", lambda request: self._note(urlsplit(request.url).netloc != self.origin, request.url)
        )
        page.on("dialog", lambda dialog: (self._note(True, dialog.message), dialog.dismiss()))

    def _note(self, is_wrong: bool, words: str) -> None:
        if is_wrong:
            self.errors.append(words)


@pytest.fixture(params=["light"])
def page(chromium: Any, cluster: StartedCluster, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A tab on the overview; afterwards it has met no error, no dialog and no foreign address."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme=request.param)
    tab = context.new_page()
    watched = Watched(cluster.url)
    watched.follow(tab)
    tab.goto(cluster.url)
    tab.watched = watched
    yield tab
    context.close()
    assert watched.errors == []


@pytest.fixture
def well(cluster: StartedCluster) -> None:
    """All brokers serve, and all replicas are in sync."""

    def is_well() -> bool:
        seen = cluster.client.metadata()
        partitions = [one for topic in seen.topics.values() for one in topic.partitions.values()]
        return len(seen.brokers) == 3 and all(len(one.isr) == 3 for one in partitions)

    until(is_well, "a cluster that is well")
