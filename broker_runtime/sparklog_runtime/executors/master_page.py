"""What the live workers of a standalone master have free, as the master itself counts it.

The master's answer to an application (``RequestMasterState``) names its workers, but not what they have given
away: those fields do not travel. Its page has them as JSON, and only workers know where that page is. So the
driver asks the master for its workers, one worker's page for the address of the master's, and that page.
A page that is switched off, filtered or silent is a reason in words, not an error.
"""

import json
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import HTTPError

PAGE_TIMEOUT_S: Final = 3.0
PAGE_BYTES_MAX: Final = 16 * 1024 * 1024
WORKERS_ASKED_MAX: Final = 3
"""How many workers are asked for the master's page before that is given up."""

_ALIVE: Final = "ALIVE"


class PageUnknown(Exception):  # noqa: N818 (it states a fact)
    """What the master has free is not known; the text says why."""


@dataclass(frozen=True, slots=True)
class FreeWorker:
    """What a live worker of a standalone master has to give."""

    cores: int
    memory_mib: int


def free_workers(context: Any, master: str) -> list[FreeWorker] | None:
    """The live workers of the standalone master in charge; None if ``master`` names none that answers so.

    PageUnknown if the master answers, but its page does not. Other errors are py4j's.
    """
    pages = _pages_of_workers(context, master)
    if not pages:
        return None if pages is None else []
    return workers_of_page(_page(_page_of_master(pages)))


def workers_of_page(page: dict[str, Any]) -> list[FreeWorker]:
    """The live workers in the JSON of a master's page; PageUnknown if it is none."""
    try:
        alive = [worker for worker in page["workers"] if worker["state"] == _ALIVE]
        return [FreeWorker(int(worker["coresfree"]), int(worker["memoryfree"])) for worker in alive]
    except (KeyError, TypeError, ValueError) as error:
        raise PageUnknown(f"the master's page has no such list of workers: {error!r}") from error


def _page_of_master(pages_of_workers: Sequence[str]) -> str:
    failure = PageUnknown("no worker was asked")
    for address in pages_of_workers[:WORKERS_ASKED_MAX]:
        try:
            found = _page(address).get("masterwebuiurl")
            if isinstance(found, str) and found.startswith("http"):
                return found
            failure = PageUnknown(f"the worker at {address} does not name its master's page")
        except PageUnknown as error:
            failure = error
    raise failure


def _page(address: str) -> dict[str, Any]:
    """The JSON of a page of Spark; PageUnknown if there is none. No proxy is asked for it."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{address.rstrip('/')}/json/", timeout=PAGE_TIMEOUT_S) as answer:
            text = answer.read(PAGE_BYTES_MAX + 1)
        if len(text) > PAGE_BYTES_MAX:
            raise PageUnknown(f"the page at {address} has more than {PAGE_BYTES_MAX} bytes")
        found = json.loads(text)
    except (OSError, ValueError) as error:  # URLError is an OSError, JSONDecodeError a ValueError
        if isinstance(error, HTTPError):
            error.close()
        raise PageUnknown(f"the page at {address} does not answer as one of Spark: {error}") from error
    if not isinstance(found, dict):
        raise PageUnknown(f"the page at {address} does not answer as one of Spark")
    return found


def _pages_of_workers(context: Any, master: str) -> list[str] | None:
    if not master.startswith("spark://"):
        return None
    jvm, deploy = context._jvm, context._jvm.org.apache.spark.deploy
    request = getattr(getattr(deploy, "DeployMessages$RequestMasterState$"), "MODULE$")
    any_class = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").Any()
    # SparkEnv has the same, but py4j cannot reflect on that class where no protobuf is installed.
    rpc = context._jsc.sc().schedulerBackend().rpcEnv()
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        endpoint = jvm.org.apache.spark.rpc.RpcAddress(host, int(port))
        answering = rpc.setupEndpointRef(endpoint, "Master")
        state = answering.askSync(request, any_class)
        if str(state.status()) == _ALIVE:
            alive = [worker for worker in state.workers() if str(worker.state()) == _ALIVE]
            return [str(worker.webUiAddress()) for worker in alive]
    return None
