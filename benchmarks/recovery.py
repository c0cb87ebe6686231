"""How fast a log directory is recovered after an unclean stop, beside reading its files once.

    python benchmarks/recovery.py [--bytes 1000000000] [--batch-bytes 16384] [--logs 8] [--root DIR]

All bytes are past the recovery point, so that recovery reads every one and compares every CRC. Reading is
``pread`` of 4 MiB at a time, by as many threads. Both are measured by turns: once with all in the page cache,
which compares work, and once with the cache dropped before, which compares what one waits for.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sparklog.model.ids import TopicPartition
from sparklog.network.clock import SystemClock
from sparklog.network.executor import ThreadExecutor
from sparklog.records.envelope import build_envelope, split, stamp
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory
from sparklog.zookeeper.boot import read_boot_id

ROUNDS = 3
CHUNK_BYTES = 4 << 20
CLUSTER = "benchmark"


def fill(root: str, logs: int, log_bytes: int, batch_bytes: int) -> None:
    directory = open_directory(root)
    payload = os.urandom(batch_bytes - 61)
    batch = bytearray(
        build_envelope(
            payload,
            attributes=0,
            record_count=10,
            last_offset_delta=9,
            base_timestamp_ms=1,
            max_timestamp_ms=1,
        )
    )
    for number in range(logs):
        log = directory.create_log(TopicPartition("recovered", number), uuid.uuid4(), LogConfig())
        while log.size_bytes < log_bytes:
            stamp(batch, 0, log.log_end_offset, 0)
            log.append(batch, split(batch))
    directory.close()


def open_directory(root: str) -> LogDirectory:
    return LogDirectory.open(root, 1, CLUSTER, LocalDisk(), SystemClock(), boot_id=read_boot_id())


def recover(root: str, executor: ThreadExecutor) -> None:
    directory = open_directory(root)
    directory.load_logs(lambda _topic: LogConfig(), executor=executor)
    directory.close()


def read(paths: list[Path], threads: int) -> None:
    def one(path: Path) -> None:
        descriptor, position, chunk = os.open(path, os.O_RDONLY), 0, bytearray(CHUNK_BYTES)
        while count := os.preadv(descriptor, [chunk], position):
            position += count
        os.close(descriptor)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, paths))


def drop_cache(paths: list[Path]) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def rate(total_bytes: int, work: Callable[[], None]) -> float:
    before = time.perf_counter()
    work()
    return total_bytes / (time.perf_counter() - before) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--batch-bytes", type=int, default=16_384)
    parser.add_argument("--logs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--root", default=None)
    options = parser.parse_args()
    root = tempfile.mkdtemp(prefix="recovery-", dir=options.root)
    try:
        fill(root, options.logs, options.bytes // options.logs, options.batch_bytes)
        paths = sorted(Path(root).glob("*/*.log"))
        total_bytes = sum(path.stat().st_size for path in paths)
        print(
            f"{total_bytes / 1e6:.0f} MB in {options.logs} logs, batches of {options.batch_bytes} bytes, "
            f"{options.threads} threads"
        )
        with ThreadExecutor("recovery", threads=options.threads) as executor:
            for cache in ("cached", "cold"):
                reads, recoveries = [], []
                for _ in range(ROUNDS):
                    for rates, work in (
                        (reads, lambda: read(paths, options.threads)),
                        (recoveries, lambda: recover(root, executor)),
                    ):
                        if cache == "cold":
                            drop_cache(paths)
                        rates.append(rate(total_bytes, work))
                reading, recovering = statistics.median(reads), statistics.median(recoveries)
                print(
                    f"  {cache}: reading {reading:.0f} MB/s, recovery {recovering:.0f} MB/s, "
                    f"ratio {recovering / reading:.2f}"
                )
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
