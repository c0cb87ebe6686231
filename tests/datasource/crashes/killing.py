"""The data source, with a process that dies at a named point of a write: once, the first time it is reached.

    task     before-open  after-open  mid-way  after-flush  after-finish
    driver   after-message (kills the tasks' processes, which are done)  before-end  during-end  after-end

A point of the driver may name a micro-batch: ``during-end:1``. Nothing is taught to the shipped code: its
calls are wrapped in the process that is to die.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter

from pyspark_sparklog import DefaultSource
from sparklog.client.producer import BatchProducer
from sparklog.client.transactions.writes.write_member import WriteMember
from sparklog.network.dialing.connection import Connection
from sparklog.wire.messages.writes.end_write import EndWriteRequest

FORMAT: Final = "killed-sparklog"
AT: Final = "killedAt"
NOTES: Final = "killedNotes"
DRIVER: Final = "killedDriver"


class Death:
    """``notes``: a folder that all processes share; what has died stands there, and who has written.

    ``driver``: ids of the driver's processes, which die with the one that reaches a point of the driver.
    """

    def __init__(self, at: str, notes: str, driver: str) -> None:
        self.at = at
        self.notes = Path(notes)
        self.driver = [int(pid) for pid in driver.split(",") if pid]

    def comes(self, point: str) -> None:
        if point == self.at and self._is_first():
            os.kill(os.getpid(), signal.SIGKILL)

    def comes_to_the_driver(self, point: str, batch_id: int) -> None:
        if self.at in (point, f"{point}:{batch_id}") and self._is_first():
            for pid in (*self.driver, os.getpid()):
                os.kill(pid, signal.SIGKILL)

    def comes_to_those_who_wrote(self) -> None:
        if self.at == "after-message" and self._is_first():
            for note in self.notes.glob("writer-*"):
                os.kill(int(note.name.partition("-")[2]), signal.SIGKILL)

    def note_writer(self) -> None:
        (self.notes / f"writer-{os.getpid()}").touch()

    def _is_first(self) -> bool:
        try:
            (self.notes / "died").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@contextmanager
def dying_task(death: Death) -> Iterator[None]:
    """The points of a task, in its own process, until the block ends."""
    send, open_, finish = BatchProducer.send, WriteMember.open, WriteMember.finish

    def sending(producer: Any, *batch: Any) -> None:
        send(producer, *batch)
        if death.at == "mid-way":
            producer.flush()
            death.comes("mid-way")

    def opening(member: Any, places: Any) -> None:
        death.comes("before-open")
        open_(member, places)
        death.comes("after-open")

    def finishing(member: Any) -> None:
        death.comes("after-flush")
        finish(member)
        death.comes("after-finish")

    with ExitStack() as patches:
        for kind, name, instead in (
            (BatchProducer, "send", sending),
            (WriteMember, "open", opening),
            (WriteMember, "finish", finishing),
        ):
            patches.enter_context(mock.patch.object(kind, name, instead))
        yield


@contextmanager
def dying_driver(death: Death, batch_id: int) -> Iterator[None]:
    """The points of a driver around and in its EndWrite."""
    send = Connection.send

    def sending(connection: Any, message: Any, version: Any = None) -> Any:
        pending = send(connection, message, version)
        if isinstance(message, EndWriteRequest):
            death.comes_to_the_driver("during-end", batch_id)
        return pending

    death.comes_to_those_who_wrote()
    death.comes_to_the_driver("before-end", batch_id)
    with mock.patch.object(Connection, "send", sending):
        yield
    death.comes_to_the_driver("after-end", batch_id)


class _KilledWriter:
    def __init__(self, writer: Any, death: Death) -> None:
        self._writer = writer
        self._death = death

    def write(self, iterator: Any) -> Any:
        with dying_task(self._death):
            written = self._writer.write(iterator)
        self._death.note_writer()
        return written


class KilledBatchWriter(_KilledWriter, DataSourceArrowWriter):  # type: ignore[misc]
    def commit(self, messages: list[Any]) -> None:
        with dying_driver(self._death, 0):
            self._writer.commit(messages)

    def abort(self, messages: list[Any]) -> None:
        self._writer.abort(messages)


class KilledStreamWriter(_KilledWriter, DataSourceStreamArrowWriter):  # type: ignore[misc]
    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 (Spark's name)
        with dying_driver(self._death, batchId):
            self._writer.commit(messages, batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 (Spark's name)
        self._writer.abort(messages, batchId)


class KilledSource(DefaultSource):
    """Written to like ``sparklog``, with the options of this module beside the others."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: Any, overwrite: bool) -> Any:
        return KilledBatchWriter(*self._made(lambda source: source.writer(schema, overwrite)))

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802 (Spark's name)
        return KilledStreamWriter(*self._made(lambda source: source.streamWriter(schema, overwrite)))

    def _made(self, make: Callable[[DefaultSource], Any]) -> tuple[Any, Death]:
        options = {name.lower(): value for name, value in self.options.items()}
        of_death = [options.pop(name.lower(), "") for name in (AT, NOTES, DRIVER)]
        return make(DefaultSource(options)), Death(*of_death)


def register_killed(spark: Any) -> None:
    """Register the format. Spark's Python processes get this module by value: tests are not on their path."""
    import sys

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark.dataSource.register(KilledSource)
