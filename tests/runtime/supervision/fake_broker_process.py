"""A broker process for tests of the supervisor: the real task around a broker that only listens.

Run as a program with the plan as JSON in its argument; ``behaviour`` in the settings says what goes wrong.
"""

import json
import os
import socket
import sys
import threading
from types import SimpleNamespace

from sparklog.model.errors import ConfigError, LogDirectoryError, UnsafeStartError
from sparklog_runtime.broker_process.broker_plan import BrokerIdentity, BrokerPlan
from sparklog_runtime.broker_process.broker_task import run_broker_process


class FakeBroker:
    """Listens on its port; leaves ``stopped`` beside its logs when it was stopped cleanly."""

    failure: str | None = None
    has_lost_session = False
    metrics_port = 9404
    lives = 0

    def __init__(self, plan: BrokerPlan, identity: BrokerIdentity) -> None:
        self._behaviour = plan.settings.get("behaviour", "")
        self._identity = identity
        self._stopped = threading.Event()
        self.ports = identity.ports
        self.addresses = {name: f"{identity.host}:{port}" for name, port in identity.ports.items()}
        self._port = identity.ports["PLAINTEXT"]
        self.node = SimpleNamespace(host=identity.host, port=self._port, epoch=os.getpid() + FakeBroker.lives)

    def start(self) -> None:
        if self._behaviour == "unsafe":
            raise UnsafeStartError("behaviour=unsafe: its certificate has expired")
        if self._behaviour == "misconfigured":
            raise ConfigError("behaviour=misconfigured: must be something else")
        if self._behaviour == "locked":
            raise LogDirectoryError("the directory is locked by process 1")
        os.makedirs(self._identity.log_dirs[0], exist_ok=True)
        self._socket = socket.create_server((self._identity.host, self._port))
        if self._behaviour == "leaves a thread":
            threading.Thread(target=threading.Event().wait, name="left", daemon=True).start()
        if self._behaviour == "fails later":
            self.failure = "its disk broke"
            self._stopped.set()
        FakeBroker.lives += 1
        if self._behaviour == "loses its session once" and FakeBroker.lives == 1:
            self.failure, self.has_lost_session = "its session expired", True
            self._socket.close()
            self._stopped.set()

    def stop(self, clean: bool = True) -> None:
        if self._behaviour == "hangs":
            threading.Event().wait()
        self._socket.close()
        self._stopped.set()
        with open(os.path.join(self._identity.log_dirs[0], "stopped"), "w") as marker:
            marker.write(str(os.getpid()))

    def wait_stopped(self, timeout_seconds: float | None = None) -> bool:
        return self._stopped.wait(timeout_seconds)


if __name__ == "__main__":
    fields = json.loads(sys.argv[1])
    for name in ("log_dir_patterns",):
        fields[name] = tuple(fields[name])
    print(run_broker_process(BrokerPlan(**fields, make_broker=FakeBroker)), flush=True)
