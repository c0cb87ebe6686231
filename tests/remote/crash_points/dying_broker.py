"""A broker's process that kills itself at its n-th call of the tier: of its store, or of a head in ZooKeeper.

python -P dying_broker.py    (each line of standard input is a life: its options, by ``victim.py``)

The calls of shipped code are wrapped here; nothing is taught to it. A point lies before each call that
changes something and after it, and in the middle of an upload. Calls that only read are no points, because a
death before them leaves nothing new. A life is a fork of this process, which spares it the imports. It
listens to its Unix socket: ``hold`` makes all points wait, ``arm N`` lets them go on, and the N-th from now
kills (0: none). It answers each command with a line of JSON, and writes one when it serves and one for the
point that kills it.
"""

import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any
from unittest.mock import patch

from sparklog.broker.life import store_threads
from sparklog.broker.life.server import BrokerOptions, BrokerServer
from sparklog.broker.partition.partition import Partition
from sparklog.core.controller.state.znodes import REMOTE_LOGS
from sparklog.model.cluster_facts import DEFAULT_LISTENER
from sparklog.model.ids import BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import Operation
from sparklog.remote.open_store import open_store
from sparklog.remote.store import RemoteStore
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper
from tests.remote.crash_points.short_times import shorten


class Death:
    """Counts the points, from all threads."""

    def __init__(self, at: int, victim: socket.socket) -> None:
        self._at, self._count, self._victim = at, 0, victim
        self._is_held = False
        self._changed = threading.Condition()

    def comes(self, moment: str, call: str, what: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_held)
            self._count += 1
            if self._count == self._at:
                self.tell(point=self._count, moment=moment, call=call, what=what)
                os.kill(os.getpid(), signal.SIGKILL)

    def hold(self) -> None:
        with self._changed:
            self._is_held = True

    def arm(self, at: int) -> None:
        with self._changed:
            self._at, self._count, self._is_held = at, 0, False
            self._changed.notify_all()

    def tell(self, **facts: object) -> None:
        self._victim.sendall(json.dumps(facts).encode() + b"\n")


class DyingStore:
    """A store with points around its calls. The check of a store at a start is not of the tier's work."""

    def __init__(self, store: RemoteStore, death: Death) -> None:
        self._store, self._death = store, death

    def _comes(self, moment: str, call: str, name: str) -> None:
        if name.startswith("topic="):
            self._death.comes(moment, call, name)

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        def with_middle() -> Iterator[bytes]:
            for number, piece in enumerate(pieces):
                yield piece
                if not number:
                    self._comes("inside", "put", name)

        self._comes("before", "put", name)
        size = self._store.put(name, with_middle())
        self._comes("after", "put", name)
        return size

    def read(self, name: str, start: int, length: int) -> bytes:
        return self._store.read(name, start, length)

    def names(self, folder: str) -> list[str]:
        return self._store.names(folder)

    def delete(self, name: str) -> None:
        self._comes("before", "delete", name)
        self._store.delete(name)
        self._comes("after", "delete", name)


class DyingZooKeeper(KazooZooKeeper):
    """A session with points around its writes of the tier's nodes."""

    death: Death

    def multi(self, operations: Any, **named: Any) -> None:
        self._around("multi", operations, lambda: super(DyingZooKeeper, self).multi(operations, **named))

    def create(self, path: str, *given: Any, **named: Any) -> Any:
        return self._around("create", path, lambda: super(DyingZooKeeper, self).create(path, *given, **named))

    def delete(self, path: str, *given: Any, **named: Any) -> None:
        self._around("delete", path, lambda: super(DyingZooKeeper, self).delete(path, *given, **named))

    def _around(self, call: str, written: str | list[Operation], write: Any) -> Any:
        paths = [written] if isinstance(written, str) else [one.path for one in written]
        tiered = next((path for path in paths if path.startswith(REMOTE_LOGS)), None)
        if tiered is None:
            return write()
        self.death.comes("before", call, tiered)
        result = write()
        self.death.comes("after", call, tiered)
        return result


def wrap(death: Death) -> None:
    DyingZooKeeper.death = death

    def dying_store(*given: Any, **named: Any) -> DyingStore:
        return DyingStore(open_store(*given, **named), death)

    delete_local, trim = Partition.delete_local_segments, Partition.trim

    def dying_delete(self: Partition, offset: int, generation: int) -> int:
        death.comes("before", "delete_local_segments", str(self.topic_partition))
        return delete_local(self, offset, generation)

    def dying_trim(self: Partition, delete: Any) -> int:
        trimmed = trim(self, delete)
        if trimmed and self.log.config.remote_storage:
            death.comes("after", "trim", str(self.topic_partition))
        return trimmed

    patch.object(store_threads, "open_store", dying_store).start()
    patch.object(Partition, "delete_local_segments", dying_delete).start()
    patch.object(Partition, "trim", dying_trim).start()


def live(given: dict[str, Any]) -> None:
    logging.basicConfig(filename=given["log"], level=logging.INFO)
    with socket.socket(socket.AF_UNIX) as victim:
        victim.connect(given["socket"])
        death = Death(given["at"], victim)
        shorten(setattr)
        wrap(death)
        broker = BrokerServer(
            BrokerOptions(
                broker_id=BrokerId(given["id"]),
                host="127.0.0.1",
                ports={DEFAULT_LISTENER: given["port"]},
                log_dirs=(given["log_dir"],),
                zookeeper=given["zookeeper"],
                config=BrokerConfig.parse(given["settings"]),
                new_zookeeper=DyingZooKeeper,
            )
        )
        broker.start()
        death.tell(epoch=broker.node.epoch)
        for line in victim.makefile():
            word, _, number = line.strip().partition(" ")
            death.hold() if word == "hold" else death.arm(int(number))
            death.tell(done=line.strip())
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a life ended
    for line in sys.stdin:
        if not os.fork():
            live(json.loads(line))


if __name__ == "__main__":
    main()
