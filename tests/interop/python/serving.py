"""The half of a Python driver that is the same for every client: requests, answers, members of groups.

A driver reads a request a line and writes an answer a line (tests/interop/driver.py has the format). Each
command is a method of the driver's class. A member of a group lives in a thread of its own, because most
clients may only be used by one thread; commands reach it through a queue.
"""

import json
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

POLL_SECONDS = 0.1
ANSWER_SECONDS = 40.0
SHOWN_BYTES = 1000


class RefusedError(Exception):
    """The cluster or the client said no: a number of Kafka's error table, or a name."""

    def __init__(self, error: int | str, message: str = ""):
        super().__init__(message or str(error))
        self.error = error


class UnsupportedError(Exception):
    """The client has no such function; the text is the reason for the table."""


def value_of(record: dict[str, Any]) -> bytes | None:
    """The value that a record of a request stands for."""
    if "size" in record:
        return b"v" * record["size"]
    return None if record.get("value") is None else record["value"].encode()


def key_of(record: dict[str, Any]) -> bytes | None:
    return None if record.get("key") is None else record["key"].encode()


def headers_of(record: dict[str, Any]) -> list[tuple[str, bytes | None]]:
    return [(name, None if value is None else value.encode()) for name, value in record.get("headers", [])]


def shown(
    offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Any
) -> dict[str, Any]:
    """A record as an answer shows it; a long value by its size alone."""
    return {
        "offset": offset,
        "timestamp": timestamp,
        "key": None if key is None else bytes(key).decode(),
        "value": None if value is None or len(value) > SHOWN_BYTES else bytes(value).decode(),
        "size": -1 if value is None else len(value),
        "headers": [[name, None if text is None else bytes(text).decode()] for name, text in headers or []],
    }


def shown_record(record: Any) -> dict[str, Any]:
    """A record of kafka-python or aiokafka."""
    return shown(record.offset, record.timestamp, record.key, record.value, record.headers)


class Member:
    """A consumer in a thread of its own. Subclasses say how to start, poll and close it."""

    def __init__(self) -> None:
        self.records: list[list[Any]] = []
        self.errors: list[str] = []
        self.rebalances = 0
        self._calls: queue.Queue[tuple[Callable[[], Any], queue.Queue[Any]] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None: ...

    def poll(self) -> None: ...

    def assignment(self) -> list[list[Any]]:
        raise NotImplementedError

    def close(self) -> None: ...

    def start(self) -> None:
        self._thread.start()
        self.call(lambda: None)

    def call(self, work: Callable[[], Any]) -> Any:
        answer: queue.Queue[Any] = queue.Queue()
        self._calls.put((work, answer))
        result = answer.get(timeout=ANSWER_SECONDS)
        if isinstance(result, BaseException):
            raise result
        return result

    def state(self) -> dict[str, Any]:
        return {
            "assignment": sorted(self.assignment()),
            "records": list(self.records),
            "errors": list(self.errors),
            "rebalances": self.rebalances,
        }

    def leave(self) -> None:
        self._calls.put(None)
        self._thread.join(ANSWER_SECONDS)

    def _run(self) -> None:
        try:
            self.begin()
            while self._serve_calls():
                try:
                    self.poll()
                except Exception as error:  # noqa: BLE001 - the runner judges it
                    self.errors.append(f"{type(error).__name__}: {error}")
                    time.sleep(POLL_SECONDS)
        finally:
            self.close()

    def _serve_calls(self) -> bool:
        """Run what other threads asked for; whether the member goes on."""
        while True:
            try:
                item = self._calls.get_nowait()
            except queue.Empty:
                return True
            if item is None:
                return False
            work, answer = item
            try:
                answer.put(work())
            except Exception as error:  # noqa: BLE001 - it is the answer
                answer.put(error)


def error_of(error: Exception, family: type[Exception]) -> int | str | None:
    """The error of kafka-python or aiokafka: its number in Kafka's table, or the name of its class."""
    if not isinstance(error, family):
        return None
    number = getattr(error, "errno", None)
    return number if isinstance(number, int) and number else type(error).__name__


def serve(driver: Any, refused: Callable[[Exception], int | str | None]) -> None:
    """Answer requests until standard input ends.

    ``refused`` finds the error in an exception of the client. It finds None in any other: the driver's bug.
    """
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(answer_to(driver, request.pop("do"), request, refused)), flush=True)


def answer_to(
    driver: Any, name: str, request: dict[str, Any], refused: Callable[[Exception], int | str | None]
) -> dict[str, Any]:
    command = getattr(driver, name, None)
    if command is None:
        return {"broken": f"no such command: {name}"}
    try:
        return {"ok": command(**request)}
    except UnsupportedError as error:
        return {"unsupported": str(error)}
    except RefusedError as error:
        return {"error": error.error, "message": str(error)}
    except Exception as error:  # noqa: BLE001 - it is the answer
        traceback.print_exc()
        code = refused(error)
        if code is None:
            return {"broken": f"{type(error).__name__}: {error}"}
        return {"error": code, "message": str(error) or repr(error)}
