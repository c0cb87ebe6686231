"""A Prometheus of the distribution, which scrapes a test's servers each second."""

import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.waiting import until

MONITORING: Final = Path(__file__).parents[2] / "conf" / "monitoring"
CACHES: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
UNPACKED: Final = CACHES / "sparklog-page" / "usr" / "bin"
"""Where scripts/page-setup has the package."""


def program(name: str) -> str:
    """``promtool`` or ``prometheus``; without it the test is skipped."""
    found = shutil.which(name) or shutil.which(name, path=str(UNPACKED))
    if found is None:
        pytest.skip(f"no {name} here: make page sets it up")
    return found


class PrometheusProcess:
    """Its HTTP API."""

    def __init__(self, url: str) -> None:
        self._url = url

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def query(self, expression: str) -> list[Any]:
        """The series that the expression has now; AssertionError if Prometheus does not understand it."""
        found: list[Any] = self._get("query", query=expression)["result"]
        return found

    def firing(self) -> set[str]:
        alerts = self._get("alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{url}: {error.read().decode()}") from error


@contextmanager
def prometheus(folder: Path, targets: Iterable[str], alerts: str, port: int) -> Iterator[PrometheusProcess]:
    """It scrapes ``targets`` as job ``sparklog``, and judges by ``alerts``, each second."""
    listed = json.dumps(list(targets))
    (folder / "alerts.yml").write_text(alerts)
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
        "rule_files: [alerts.yml]\n"
        f"scrape_configs: [{{job_name: sparklog, static_configs: [{{targets: {listed}}}]}}]\n"
    )
    command = [
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        served = PrometheusProcess(f"http://127.0.0.1:{port}")
        until(served.is_ready, lambda: (folder / "prometheus.log").read_text()[-2_000:])
        yield served
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
