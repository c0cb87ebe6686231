"""What each piece of a write's and a read's work takes alone: CPU seconds of this process, for the same rows.

The pieces call what the data source, the client and the brokers call. Rows come in batches of Spark's size.
"""

import hashlib
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Final

import pyarrow as pa
from crc32c import crc32c

from bench.scale import say
from sparklog.client.partitioning.partitioner import split_by_partition
from sparklog.model.ids import TopicPartition
from sparklog.network.clock import SystemClock
from sparklog.network.streams.inbound import FrameReceiver
from sparklog.records.decoding import read_columns
from sparklog.records.envelope import Bytes, Compression, split, stamp
from sparklog.records.payload_kinds import SUPPORTED_PAYLOADS
from sparklog.records.restamp import set_producer
from sparklog.records.validate import Accepted, check_produced
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.wire.framing import FRAME_PREFIX
from sparklog_datasource.rows.form import RowForm
from sparklog_datasource.rows.placed import put_together, with_place
from sparklog_datasource.writing.batching import Batching, UntypedEncoding
from sparklog_datasource.writing.placing import PartitionChoice, rows_by_topic
from sparklog_datasource.writing.row_sizes import row_sizes
from sparklog_datasource.writing.task import WRITTEN_COLUMNS

PARTITIONS: Final = 4
KEY_BYTES: Final = 10
VALUE_BYTES: Final = 100
SPARK_BATCH_ROWS: Final = 10_000
"""spark.sql.execution.arrow.maxRecordsPerBatch"""
BATCH_BYTES_MAX: Final = 1_048_588
ENCODING_CRCS: Final = 2
"""Of each column and of the whole batch."""
FRAME_HEAD_BYTES: Final = 75
FRAME_BYTES_MAX: Final = 8 << 20
TOPIC: Final = "layers"

Placed = list[tuple[TopicPartition, pa.RecordBatch]]
Batches = list[tuple[TopicPartition, bytes]]
Arrived = list[tuple[TopicPartition, memoryview]]


@dataclass(frozen=True, slots=True)
class Pieces:
    """CPU seconds. ``crc_s``: one CRC of all bytes; ``copy_s``: the producer's copy, in which it numbers
    batches; ``check_s``: a leader's check of what was produced.
    """

    place_s: float
    encode_s: float
    crc_s: float
    copy_s: float
    send_s: float
    receive_s: float
    check_s: float
    append_s: float
    decode_s: float
    hand_over_s: float
    batches: int


def pieces(rows: int, rounds: int) -> Pieces:
    """Medians of ``rounds``, warm."""
    spark_batches = _spark_batches(rows)
    found = [_one_round(spark_batches) for _ in range(rounds + 1)][1:]
    return Pieces(**{name: median(getattr(one, name) for one in found) for name in Pieces.__slots__})


def _one_round(spark_batches: list[pa.RecordBatch]) -> Pieces:
    placed: Placed = []
    place_s = _cpu_s(lambda: placed.extend(_place(spark_batches)))
    batches: Batches = []
    encode_s = _cpu_s(lambda: _encode(placed, batches))
    crc_s = _cpu_s(lambda: [crc32c(batch) for _, batch in batches])
    copy_s = _cpu_s(lambda: [_numbered(batch) for _, batch in batches])
    send_s, receive_s = _network(batches)
    arrived = [(place, _in_frame(batch)) for place, batch in batches]
    read: Placed = []
    found = Pieces(
        place_s=place_s,
        encode_s=encode_s - ENCODING_CRCS * crc_s,
        crc_s=crc_s,
        copy_s=copy_s - crc_s,
        send_s=send_s,
        receive_s=receive_s,
        check_s=_cpu_s(lambda: [_check(batch) for _, batch in arrived]),
        append_s=_appended(batches),
        decode_s=_cpu_s(lambda: _decode(arrived, read)),
        hand_over_s=_cpu_s(lambda: _hand_over(read)),
        batches=len(batches),
    )
    say(f"layers: {found}")
    return found


def _cpu_s(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def _spark_batches(rows: int) -> list[pa.RecordBatch]:
    """Keys of 10 B and values of 100 B, of which lz4 could shorten half."""
    made = []
    for first in range(0, rows, SPARK_BATCH_ROWS):
        numbers = range(first, min(rows, first + SPARK_BATCH_ROWS))
        keys = [b"%0*d" % (KEY_BYTES, number) for number in numbers]
        values = [hashlib.sha256(key).hexdigest().encode().ljust(VALUE_BYTES, b"x") for key in keys]
        made.append(pa.RecordBatch.from_pydict({"key": pa.array(keys), "value": pa.array(values)}))
    return made


def _place(spark_batches: list[pa.RecordBatch]) -> Placed:
    choice = PartitionChoice(TOPIC, PARTITIONS, 0)
    placed: Placed = []
    for batch in spark_batches:
        for name, rows in rows_by_topic(batch, TOPIC):
            partitions = choice.choose(rows, row_sizes(rows))
            parts = split_by_partition(rows.select(WRITTEN_COLUMNS), partitions)
            placed += [(TopicPartition(name, number), part) for number, part in parts.items()]
    return placed


def _encode(placed: Placed, batches: Batches) -> None:
    batching = Batching(
        UntypedEncoding(Compression.NONE), lambda place, batch: batches.append((place, batch))
    )
    for place, rows in placed:
        batching.add(place, rows, BATCH_BYTES_MAX)
    batching.flush(lambda topic: BATCH_BYTES_MAX)


def _network(batches: Batches) -> tuple[float, float]:
    """One way over the loopback device: CPU seconds of the sending thread, and of the receiving one."""
    received: list[float] = []

    def receive(server: socket.socket) -> None:
        connection, _ = server.accept()
        frames, left = FrameReceiver(FRAME_BYTES_MAX), len(batches)
        before = time.thread_time()
        while left:
            frames.receive(connection)
            while frames.next_frame() is not None:
                left -= 1
        received.append(time.thread_time() - before)
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=receive, args=(server,))
        thread.start()
        with socket.create_connection(server.getsockname()) as client:
            before = time.thread_time()
            for _, batch in batches:
                client.sendall(FRAME_PREFIX.pack(len(batch)))
                client.sendall(batch)
            sent = time.thread_time() - before
        thread.join()
    return sent, received[0]


def _numbered(batch: bytes) -> None:
    """As the producer gives a batch its number in a copy, and the batch a new CRC."""
    set_producer(bytearray(batch), 0, producer_id=7, producer_epoch=0, base_sequence=0)


def _in_frame(batch: bytes) -> memoryview:
    """As a batch lies in the frame that brought it: at no address that Arrow likes."""
    frame = bytearray(FRAME_HEAD_BYTES) + batch
    return memoryview(frame)[FRAME_HEAD_BYTES:]


def _check(batch: Bytes) -> None:
    """As the leader checks what a client sent; a follower checks the CRC alone."""
    checked = check_produced(batch, max_batch_bytes=BATCH_BYTES_MAX, payload_kinds=SUPPORTED_PAYLOADS)
    if not isinstance(checked, Accepted):
        raise RuntimeError(f"a batch of the benchmark was refused: {checked}")


def _appended(batches: Batches) -> float:
    """CPU seconds of appending all to one log in the page cache."""
    copies = [bytearray(batch) for _, batch in batches]
    with tempfile.TemporaryDirectory(prefix="bench-layers-") as root:
        log = Log.open(
            f"{root}/{TOPIC}-0", TopicPartition(TOPIC, 0), uuid.uuid4(), LogConfig(), LocalDisk(),
            SystemClock(), recovery_point=0, clean=False,
        )  # fmt: skip
        return _cpu_s(lambda: [_append(log, batch) for batch in copies])


def _append(log: Log, batch: bytearray) -> None:
    stamp(batch, 0, log.log_end_offset, 0)
    log.append(batch, split(batch))


def _decode(batches: Arrived, read: Placed) -> None:
    for place, batch in batches:
        read += [(place, rows) for rows in read_columns(batch, split(batch))]


def _hand_over(read: Placed) -> None:
    for _ in put_together(with_place(rows, place, RowForm()) for place, rows in read):
        pass
