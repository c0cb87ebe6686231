"""A broker in a process of its own, without Spark around it, told what to do on its standard input.

python control_broker.py ZOOKEEPER ID DIRECTORY PORT SETTINGS [PROFILE]

SETTINGS is a JSON object. It prints one line of JSON when it is registered. Orders, and PROFILE, are those of
``control_candidate``.
"""

import json
import sys
import time

from bench.control_candidate import Profiles, say
from sparklog.broker.life.server import BrokerOptions, BrokerServer
from sparklog.model.cluster_facts import DEFAULT_LISTENER
from sparklog.model.ids import BrokerId
from sparklog.model.settings.config import BrokerConfig


def main() -> None:
    connect, broker, directory, port, settings, *rest = sys.argv[1:]
    profiles = Profiles()
    if rest:
        profiles.watch()
    began = time.monotonic()
    server = BrokerServer(
        BrokerOptions(
            broker_id=BrokerId(int(broker)),
            host="127.0.0.1",
            ports={DEFAULT_LISTENER: int(port)},
            log_dirs=(directory,),
            zookeeper=connect,
            config=BrokerConfig.parse(json.loads(settings)),
        )
    )
    server.start()
    say(port=server.node.port, epoch=server.node.epoch, started_s=time.monotonic() - began)
    for line in sys.stdin:
        match json.loads(line)["do"]:
            case "cpu":
                say(cpu_s=time.process_time())
            case "profile":
                profiles.write(rest[0])
                say(written=rest[0])
    server.stop()


if __name__ == "__main__":
    main()
