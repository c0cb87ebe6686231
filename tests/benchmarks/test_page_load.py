"""Requests to a page, as a browser and a scraper make them."""

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench.page_load import first_paint, searching_page

STEPS = 3


class PageServer(ThreadingHTTPServer):
    """``asked``: the paths, in order; ``through``: a search has had all its answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.asked: list[str] = []
        self.through = threading.Event()


class Page(BaseHTTPRequestHandler):
    """A search is through after three answers."""

    server: PageServer

    answers: ClassVar = {
        "/": b'<link href="static/page.css"><script src="static/main.js"></script>',
        "/static/page.css": b"",
        "/static/main.js": b"",
        "/api/": b'{"partitions": 3}',
        "/metrics": b"sparklog_broker_up 1",
    }

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        self.server.asked.append(self.path)
        body = self.answers.get(asked.path, b"")
        if asked.path.endswith("/records"):
            step = int(parse_qs(asked.query).get("at", ["0"])[0]) + 1
            body = f'{{"next": "{step}", "left": {STEPS - step}}}'.encode()
            if step == STEPS:
                self.server.through.set()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Tests read what was asked for."""


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def url_of(server: PageServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def test_a_paint_is_the_document_what_it_names_and_the_figures(server: PageServer) -> None:
    assert first_paint(url_of(server)) > 0
    assert server.asked == ["/", "/static/page.css", "/static/main.js", "/api/"]


def test_figures_without_partitions_are_no_paint(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Page.answers, "/api/", b'{"verdict": "no broker answers"}')
    with pytest.raises(RuntimeError, match=r"says nothing of partitions: .*no broker answers"):
        first_paint(url_of(server))


def test_a_page_that_searches_goes_on_from_where_it_was_and_is_scraped(server: PageServer) -> None:
    with searching_page(url_of(server), "events"):
        assert server.through.wait(30)
    asked = server.asked
    assert "/metrics" in asked
    assert [path.partition("&at=")[2] for path in asked if "/events/records" in path][:STEPS] == [
        "",
        "1",
        "2",
    ]


def test_a_page_that_never_answers_was_no_load(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Page.answers, "/metrics", b"nothing of brokers")
    with (
        pytest.raises(RuntimeError, match=r"answered: .*'scrapes': 0"),
        searching_page(url_of(server), "events"),
    ):
        assert server.through.wait(30)
