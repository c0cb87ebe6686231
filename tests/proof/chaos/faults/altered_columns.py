"""The columns of the typed topic change again and again, faster than brokers hear of it."""

import threading
from random import Random
from typing import Final

from chaos.access import Access
from chaos.nemesis import Cluster, Nemesis
from chaos.typed.changes import change_columns, connected
from sparklog.model.errors import SparklogError

EVERY_S: Final = (0.0, 0.4)
CALL_MS: Final = 5_000
END_S: Final = 30.0


class AlterColumns(Nemesis):
    """Version after version, by a thread of its own. One that is refused, under another fault, was overtaken
    by administrators, or found no controller.
    """

    kind = "alter-columns"

    def __init__(self) -> None:
        self._leave = threading.Event()
        self._thread: threading.Thread | None = None
        self._mistake: Exception | None = None

    def begin(self, cluster: Cluster, rng: Random) -> str:
        self._raise_mistake()
        with connected(cluster.access, CALL_MS) as client:
            told = change_columns(client, rng)
        self._leave.clear()
        own = Random(rng.random())
        self._thread = threading.Thread(
            target=self._alter, args=(cluster.access, own), name=self.kind, daemon=True
        )
        self._thread.start()
        return f"{told}, and so on"

    def end(self) -> None:
        self._leave.set()
        if self._thread is not None:
            self._thread.join(END_S)
            self._thread = None

    def _alter(self, access: Access, rng: Random) -> None:
        with connected(access, CALL_MS) as client:
            while not self._leave.wait(rng.uniform(*EVERY_S)):
                try:
                    change_columns(client, rng)
                except (SparklogError, OSError):
                    continue
                except Exception as error:  # noqa: BLE001 (the next strike raises it, as a mistake of the harness)
                    self._mistake = error
                    return

    def _raise_mistake(self) -> None:
        if self._mistake is not None:
            raise AssertionError(f"changes of columns ended: {self._mistake!r}")
