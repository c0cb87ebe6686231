"""What a standalone master has free, out of its page, which is found through a worker's."""

import http.server
import json
import threading
from types import SimpleNamespace

import pytest

from sparklog_runtime.executors import master_page
from sparklog_runtime.executors.master_page import FreeWorker, PageUnknown, free_workers, workers_of_page


@pytest.fixture
def pages():
    """A server of pages as Spark's; ``pages.texts`` is what is there, by path."""
    texts = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            text = texts.get(self.path)
            self.send_response(404 if text is None else 200)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield SimpleNamespace(texts=texts, url=f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def ask(monkeypatch):
    """Asks a master whose workers have these pages."""

    def ask(*addresses):
        monkeypatch.setattr(master_page, "_pages_of_workers", lambda context, master: list(addresses))
        return free_workers(None, "spark://host:7077")

    return ask


def worker(state="ALIVE", cores=2, memory=1_672):
    return {"state": state, "cores": 4, "coresfree": cores, "memory": 3_072, "memoryfree": memory}


def test_the_page_of_the_master_that_a_worker_names_says_what_live_workers_have_free(pages, ask):
    pages.texts["/worker/json/"] = json.dumps({"masterwebuiurl": f"{pages.url}/master"})
    pages.texts["/master/json/"] = json.dumps({"workers": [worker(), worker("DEAD"), worker(cores=0)]})
    assert ask(f"{pages.url}/worker") == [FreeWorker(2, 1_672), FreeWorker(0, 1_672)]


def test_a_worker_without_a_page_is_passed_over_for_the_next(pages, ask):
    pages.texts["/worker/json/"] = json.dumps({"masterwebuiurl": f"{pages.url}/master"})
    pages.texts["/master/json/"] = json.dumps({"workers": [worker()]})
    assert ask(f"{pages.url}/gone", f"{pages.url}/worker") == [FreeWorker(2, 1_672)]


def test_a_master_without_workers_has_nothing_free_and_no_page_is_asked(ask):
    assert ask() == []


@pytest.mark.parametrize("text", ["", "<html>", "[]", "{}", '{"masterwebuiurl": 7}'])
def test_a_page_that_is_none_of_sparks_is_a_reason_in_words(pages, ask, text):
    pages.texts["/worker/json/"] = text
    with pytest.raises(PageUnknown, match=r"http://127\.0\.0\.1:\d+/worker"):
        ask(f"{pages.url}/worker")


def test_a_page_without_end_is_not_read_to_its_end(pages, ask, monkeypatch):
    monkeypatch.setattr(master_page, "PAGE_BYTES_MAX", 100)
    pages.texts["/worker/json/"] = json.dumps({"masterwebuiurl": "x" * 200})
    with pytest.raises(PageUnknown, match="more than 100 bytes"):
        ask(f"{pages.url}/worker")


@pytest.mark.parametrize("page", [{}, {"workers": 7}, {"workers": [{}]}, {"workers": [worker(cores=None)]}])
def test_a_page_of_another_form_is_a_reason_in_words(page):
    with pytest.raises(PageUnknown, match="has no such list of workers"):
        workers_of_page(page)
