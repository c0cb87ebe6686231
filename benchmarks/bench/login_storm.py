"""Many clients that log in at once, in a process of their own: one storm for each line of input.

    login_storm.py BOOTSTRAP COUNT TOPIC PROPERTIES_AS_JSON

Each client is new, logs in and asks where the topic is. An answer is the seconds until the last one knows.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

sys.path.insert(0, str(Path(__file__).parents[1]))

from sparklog.client.cluster import ClusterClient
from sparklog.client.security.connecting import connector_of

TIMEOUT_MS = 60_000


def main() -> None:
    servers, count, topic = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    properties = json.loads(sys.argv[4])
    gate = Barrier(count + 1)

    def log_in(_: int) -> None:
        client = ClusterClient(servers, connector=connector_of(properties), retry_timeout_ms=TIMEOUT_MS)
        with client:
            gate.wait()
            client.topic(topic)

    with ThreadPoolExecutor(count) as pool:
        print("ready", flush=True)
        for _ in sys.stdin:
            storm = pool.map(log_in, range(count))
            gate.wait()
            began = time.monotonic()
            list(storm)
            print(time.monotonic() - began, flush=True)


if __name__ == "__main__":
    main()
