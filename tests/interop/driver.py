"""A client under test: a process that obeys requests, one a line, so that each case is written once for all.

Every client has a small driver in its own language (the folders beside this file). It takes the bootstrap
servers as its last argument, reads one JSON object a line from standard input and writes one a line to
standard output:

    {"do": "produce", "topic": "t", "records": [{"key": "k", "value": "v"}], "codec": "lz4"}
    {"ok": [[0, 17]]}                                            the result, here partition and offset of each
    {"error": 17, "message": "..."}                              refused: a number or a name of Kafka's table
    {"unsupported": "kafka-go has no static members"}            the client cannot; the table has the reason
    {"broken": "no such command: prodce"}                        the driver has failed, so the case fails

A driver has every command, and knows the errors of its client; whatever else comes is ``broken``.

The commands, with what they take and answer:

- ``hello``: the client's name and version
- ``connect(servers, security)``: all that follows goes to these servers, in this way. ``security`` has
  ``protocol`` ("SSL", "SASL_SSL"), ``ca`` (a PEM file), of a login ``mechanism``, ``user``, ``password``,
  of a certificate ``certificate`` (a PEM file with its key); the same as PKCS12 files are ``trust_store``
  and ``key_store``, under ``store_password``. Before it, a driver connects to nothing by itself
- ``produce(topic, records, acks, codec, idempotent, pace_ms)``: partition and offset of each record. A record
  has ``key``, ``value`` (text or null), ``size`` (so many bytes instead of a value), ``headers``,
  ``timestamp``, ``partition``
- ``read(topic, partition, start, count, timeout_ms, fetch_bytes, reset, committed)``: up to ``count``
  records; ``start`` is an offset, "earliest", "latest" or {"time": milliseconds}; ``reset`` as the client's
  auto.offset.reset; ``committed``: nothing of transactions that are open or aborted
- ``offsets(topic, partition, times)``: earliest, latest, and the offset of each time, -1 if none is so late
- ``join(member, group, topics | pattern, assignor, instance, session_ms)``: a member begins to poll
- ``state(member)``: its assignment, all records that it was given, its errors, how often it was assigned
- ``commit(member, offsets)``, ``committed(member, partitions)``, ``leave(member)``
- ``txn_init(producer, transactional_id, timeout_ms)``, ``txn_begin(producer)``,
  ``txn_end(producer, commit)``, ``txn_close(producer)``: a transactional producer, which lives until closed
- ``txn_send(producer, topic, records)``: partition and offset of each record, once all are acknowledged
- ``txn_offsets(producer, member, group, offsets)``: the member's group goes on there, if it commits
- ``create_topic``, ``delete_topic``, ``add_partitions``, ``topics``, ``configs``, ``set_config``,
  ``delete_records``, ``cluster``, ``groups``, ``describe_group``, ``delete_group``, ``group_offsets``,
  ``set_group_offsets``: what an admin client asks
- ``fence_producers(transactional_ids)``: producer id and epoch of each afterwards; drivers of Java only
"""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from sparklog.model.error_codes import ErrorCode

ANSWER_SECONDS = 60.0


class RefusedError(Exception):
    """The driver's client was told no. ``error`` is the name in Kafka's table, or the client's own name."""

    def __init__(self, error: int | str, message: str) -> None:
        self.error = ErrorCode(error).name.upper() if isinstance(error, int) else error
        super().__init__(f"{self.error}: {message}")


class Driver:
    """One process of one client; ``driver.produce(topic="t", ...)`` sends a request, returns the result."""

    def __init__(self, command: Sequence[str], servers: str, log: Path, cwd: Path) -> None:
        self.log = log
        self._output = b""
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, servers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=cwd
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def __getattr__(self, command: str) -> Callable[..., Any]:
        def send(**options: Any) -> Any:
            self.send(command, **options)
            return self.answer()

        return send

    def send(self, command: str, **options: Any) -> None:
        """Write a request without waiting for its answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": command, **options}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pytest.fail(f"the driver has ended before {command}: {self._last_words()}")

    def answer(self) -> Any:
        """The result of the oldest request without one; skips the test if the client has no such function."""
        answer = json.loads(self._line())
        if "broken" in answer:
            pytest.fail(f"the driver: {answer['broken']}: {self._last_words()}")
        if "unsupported" in answer:
            pytest.skip(answer["unsupported"])
        if "error" in answer:
            raise RefusedError(answer["error"], answer.get("message", ""))
        return answer["ok"]

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process, if it has not ended."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        descriptor, deadline = self._process.stdout.fileno(), time.monotonic() + ANSWER_SECONDS
        poll = select.poll()  # the brokers of this process have over 1,023 descriptors, which select refuses
        poll.register(descriptor, select.POLLIN)
        while b"\n" not in self._output:
            left = deadline - time.monotonic()
            if not poll.poll(max(left, 0) * 1_000):
                pytest.fail(f"the driver has not answered for {ANSWER_SECONDS:.0f} s: {self._last_words()}")
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                status = self._process.wait(ANSWER_SECONDS)
                pytest.fail(f"the driver has ended with status {status}: {self._last_words()}")
            self._output += piece
        line, _, self._output = self._output.partition(b"\n")
        return line

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-1500:]
