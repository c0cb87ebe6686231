"""A controller candidate in a process of its own, told what to do on its standard input.

python control_candidate.py ZOOKEEPER [PROFILE]

It prints one line of JSON when it is up, and one for each order: ``{"do": "cpu"}`` is answered with the CPU
seconds that it has used. With PROFILE every thread is profiled, and the order ``profile`` writes
what was found since the last one to that file (``python -m pstats`` reads it).
"""

import cProfile
import json
import os
import pstats
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from sparklog.controller.controller_server import ControllerServer
from sparklog.model.settings.config import BrokerConfig
from sparklog.network.clock import SystemClock
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

SESSION_TIMEOUT_MS: Final = 30_000
START_TIMEOUT_MS: Final = 30_000


class Profiles:
    """One profile for each thread that starts after ``watch``."""

    def __init__(self) -> None:
        self._all: list[cProfile.Profile] = []

    def watch(self) -> None:
        run: Callable[[threading.Thread], None] = threading.Thread.run

        def profiled(thread: threading.Thread) -> None:
            profile = cProfile.Profile()
            self._all.append(profile)
            profile.enable()
            try:
                run(thread)
            finally:
                profile.disable()

        threading.Thread.run = profiled  # type: ignore[method-assign]

    def write(self, path: str) -> None:
        """Everything found so far, of all threads together; counted from nothing afterwards."""
        filled = [profile for profile in self._all if profile.getstats()]
        stats = pstats.Stats(filled[0])
        for profile in filled[1:]:
            stats.add(profile)
        stats.dump_stats(path)
        for profile in filled:
            profile.clear()


def say(**told: object) -> None:
    print(json.dumps(told), flush=True)


def main() -> None:
    connect, profile_path = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    profiles = Profiles()
    if profile_path:
        profiles.watch()
    server = ControllerServer(
        zookeeper=KazooZooKeeper(connect, SESSION_TIMEOUT_MS).start(START_TIMEOUT_MS),
        host="127.0.0.1",
        port=0,
        cluster_config=BrokerConfig.parse({"min.insync.replicas": "2"}),
        clock=SystemClock(),
        pid=os.getpid(),
        application=f"bench-{os.getpid()}",
    )
    server.start()
    say(port=server.port, active=server.is_active)
    for line in sys.stdin:
        match json.loads(line)["do"]:
            case "cpu":
                say(cpu_s=time.process_time(), active=server.is_active)
            case "profile":
                profiles.write(profile_path)
                say(written=profile_path)
    server.stop()


if __name__ == "__main__":
    main()
