"""A cluster of real brokers, and a browser without one: requests to the page in this process."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from sparklog.testing import InProcessCluster
from sparklog.web.page_app import build_app
from sparklog.web.page_settings import PageSettings
from sparklog.web.page_viewers import OneViewer
from sparklog.web.viewer import Viewer

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def cluster() -> Iterator[InProcessCluster]:
    with InProcessCluster(brokers=3) as cluster:
        yield cluster


def page_of(cluster: InProcessCluster) -> TestClient:
    """A page of its own, which has asked nothing yet."""
    viewer = Viewer(cluster.client, options="--root /data")
    return TestClient(build_app(OneViewer(viewer), PageSettings()), base_url="http://localhost")


@pytest.fixture
def browser(cluster: InProcessCluster) -> TestClient:
    return page_of(cluster)


@pytest.fixture
def ask(cluster: InProcessCluster) -> Ask:
    """The JSON of a path, with the status that is expected."""

    def ask(path: str, status: int = 200) -> Any:
        answer = page_of(cluster).get(f"/api{path}")
        assert answer.status_code == status, answer.text
        return answer.json()

    return ask
