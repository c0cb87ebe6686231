"""A pipeline of confluent-kafka in a process of its own, which a test stops and resumes.

The process takes one step for each line of its standard input, and answers with one line: what the step
returned, or the name of the client's error.
"""

import json
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

SESSION_MS = 1_500
STEP_S = 30.0


class Pipeline:
    """Copies ``source`` to ``sink``, with its offsets in its transactions."""

    def __init__(self, servers: str, group: str, source: str, sink: str, me: str, timeout_ms: int) -> None:
        shared = {"bootstrap.servers": servers, "log_level": 2, "reconnect.backoff.max.ms": 500}
        self._consumer = Consumer(
            {
                **shared,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 100,
            }
        )
        self._producer = Producer(
            {**shared, "transactional.id": f"{group}-{me}", "transaction.timeout.ms": timeout_ms}
        )
        self._source, self._sink = source, sink
        self._batch: list[Any] = []
        self._member: Any = None

    def start(self) -> None:
        self._producer.init_transactions(STEP_S)
        self._consumer.subscribe([self._source])

    def poll(self) -> list[str]:
        """The next records. The group's metadata are those under which the member owns them."""
        self._batch = [one for one in self._consumer.consume(100, timeout=0.2) if one.error() is None]
        self._member = self._consumer.consumer_group_metadata()
        return [one.value().decode() for one in self._batch]

    def write(self) -> None:
        self._producer.begin_transaction()
        for one in self._batch:
            self._producer.produce(self._sink, one.value())
        self._producer.flush(STEP_S)

    def follow(self) -> int:
        """Take part in a rebalance, and keep what belongs to the generation before; how much is owned now."""
        self._consumer.poll(0.1)
        return len(self._consumer.assignment())

    def offsets(self) -> None:
        ends = {(one.topic(), one.partition()): one.offset() + 1 for one in self._batch}
        positions = [TopicPartition(*place, end) for place, end in ends.items()]
        self._producer.send_offsets_to_transaction(positions, self._member, STEP_S)

    def commit(self) -> None:
        self._producer.commit_transaction(STEP_S)

    def abort(self) -> None:
        self._producer.abort_transaction(STEP_S)

    def leave(self) -> None:
        self._consumer.close()


def serve(pipeline: Pipeline) -> None:
    for line in sys.stdin:
        try:
            answer = {"done": getattr(pipeline, line.strip())()}
        except KafkaException as error:
            answer = {"refused": error.args[0].name()}
        print(json.dumps(answer), flush=True)


class RefusedError(Exception):
    """The client's step was refused; the text is the name of its error."""


class PipelineProcess:
    """The test's side: each method of ``Pipeline`` is a step of the process."""

    def __init__(self, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def __call__(self, step: str) -> Any:
        self.begin(step)
        return self.finish()

    def begin(self, step: str) -> None:
        """A step whose result is not waited for yet."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{step}\n")
        self._process.stdin.flush()

    def finish(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the pipeline's process has ended"
        answer = json.loads(line)
        if "refused" in answer:
            raise RefusedError(answer["refused"])
        return answer["done"]

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    *names, timeout = sys.argv[1:]
    serve(Pipeline(*names, int(timeout)))
