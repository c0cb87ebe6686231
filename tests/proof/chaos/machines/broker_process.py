"""A broker as a process of its own, without Spark: for faults of its machine, many in little time.

python broker_process.py BROKER.json

In a Spark task ``sparklog_runtime.broker_process.broker_task`` does the same. Here is no supervisor: a
broker that loses its session starts again in this process, and one that cannot go on ends it.
"""

import importlib
import json
import logging
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

from sparklog.broker.life.server import BrokerOptions, BrokerServer
from sparklog.model.ids import BrokerId
from sparklog.model.settings.config import BrokerConfig

_POLL_S = 0.1


def main(path: str) -> int:
    given = json.loads(Path(path).read_text())
    logging.basicConfig(
        filename=given["log"],
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(threadName)s: %(message)s",
    )
    if given.get("mutant"):
        sys.path.append(str(Path(__file__).parents[2]))
        importlib.import_module("chaos.bugs").put_in(given["mutant"])
        logging.warning("this broker has a bug that was put there: %s", given["mutant"])
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    options = BrokerOptions(
        broker_id=BrokerId(given["id"]),
        host=given["host"],
        ports=given["ports"],
        log_dirs=tuple(given["log_dirs"]),
        zookeeper=given["zookeeper"],
        config=BrokerConfig.parse(given["settings"]),
        rack=None,
        on_recovery=logging.info,
    )
    while not stop.is_set():
        broker = BrokerServer(options)
        broker.start()
        while not stop.is_set() and not broker.wait_stopped(_POLL_S):
            continue
        if stop.is_set():
            broker.stop(clean=True)
        elif not broker.has_lost_session:
            logging.error("the broker ends: %s", broker.failure)
            return 1
        options = replace(options, ports=broker.ports)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
