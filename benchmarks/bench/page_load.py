"""What a page asks that searches, and what scrapes it: requests to the page of a cluster's driver."""

import contextlib
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

TIMEOUT_S: Final = 60.0
SCRAPE_S: Final = 5.0
ABSENT: Final = "this text is in no record"
PAUSE_S: Final = 0.2
"""After a request that failed: a broker has been killed."""
_STATIC: Final = re.compile(r"""(?:src|href)="(static/[^"]+)\"""")
FAILURES: Final = (OSError, urllib.error.URLError, ValueError)


def get(url: str) -> bytes:
    """The answer's body; HTTPError of a status that is not 200."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        return bytes(answer.read())


def get_json(url: str) -> Any:
    return json.loads(get(url))


def first_paint(url: str) -> float:
    """Seconds until a browser has what the overview shows: the document, its files, and the figures."""
    began = time.monotonic()
    document = get(f"{url}/").decode()
    for path in _STATIC.findall(document):
        get(f"{url}/{path}")
    if "partitions" not in (answer := get_json(f"{url}/api/")):
        raise RuntimeError(f"{url}/api/ says nothing of partitions: {str(answer)[:500]}")
    return time.monotonic() - began


@contextlib.contextmanager
def searching_page(url: str, topic: str) -> Iterator[None]:
    """A search over all of a topic, begun anew when it is through, and a scrape every five seconds.

    RuntimeError if neither has found anything: then nothing was measured.
    """
    stop = threading.Event()
    answered = {"searches": 0, "scrapes": 0}
    threads = [
        threading.Thread(target=_search, args=(url, topic, stop, answered), name="searches"),
        threading.Thread(target=_scrape, args=(url, stop, answered), name="scrapes"),
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if not all(answered.values()):
        raise RuntimeError(f"the page of {url} answered: {answered}")


def _search(url: str, topic: str, stop: threading.Event, answered: dict[str, int]) -> None:
    at = ""
    while not stop.is_set():
        query = {"from": "oldest", "text": ABSENT, **({"at": at} if at else {})}
        try:
            answer = get_json(f"{url}/api/topics/{topic}/records?{urlencode(query)}")
        except FAILURES:  # a broker was killed: the next answer counts again
            stop.wait(PAUSE_S)
            continue
        answered["searches"] += 1
        at = answer["next"] if answer["left"] else ""


def _scrape(url: str, stop: threading.Event, answered: dict[str, int]) -> None:
    while not stop.is_set():
        with contextlib.suppress(*FAILURES):
            answered["scrapes"] += b"sparklog_broker_up" in get(f"{url}/metrics")
        stop.wait(SCRAPE_S)
