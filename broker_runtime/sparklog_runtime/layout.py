"""The folders of one cluster's root directory, and the lock that keeps a second start out of it.

    DIR/lock              held (flock) while the cluster runs; contains the holder's process id
    DIR/cluster.json      where the cluster listens and which processes serve it, while it runs
    DIR/zookeeper/        the embedded ZooKeeper's data
    DIR/broker-N/0, 1...  the log directories of broker N
    DIR/logs/             spark.log, spark-output.log, broker-N.log, controller.log, zookeeper.log
    DIR/spark/            Spark's scratch space; emptied at every start

The lock is the kernel's: it goes away with the process that held it, however that ended.
"""

import fcntl
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from sparklog.model.errors import SparklogError


class RootInUse(SparklogError):  # noqa: N818 (it states a fact)
    """Another process runs a cluster on this root directory."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths under one root directory, all absolute."""

    root: Path

    @classmethod
    def at(cls, root: str | Path) -> "Layout":
        return cls(Path(root).expanduser().absolute())

    @property
    def cluster_file(self) -> Path:
        return self.root / "cluster.json"

    @property
    def zookeeper(self) -> Path:
        return self.root / "zookeeper"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def scratch(self) -> Path:
        return self.root / "spark"

    @property
    def escaped_root(self) -> str:
        """The root as the beginning of a pattern: a brace in the user's path must survive str.format."""
        return str(self.root).replace("{", "{{").replace("}", "}}")

    def log_dir_patterns(self, count: int) -> tuple[str, ...]:
        """Log directories of a broker, with ``{id}`` where its id goes."""
        return tuple(f"{self.escaped_root}/broker-{{id}}/{index}" for index in range(count))

    def create(self) -> None:
        """Make the folders and empty the scratch space. Call with the lock held."""
        self.logs.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()


class RootLock:
    """Exclusive use of a root directory, from construction to ``release``."""

    def __init__(self, layout: Layout) -> None:
        try:
            layout.root.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(layout.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise SparklogError(
                f"root directory {layout.root} cannot be used: {error.strerror}; choose another with --root"
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise RootInUse(
                f"root directory {layout.root} is in use by process {holder}; "
                "stop that cluster first, or choose another directory with --root"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode("ascii"), 0)

    def release(self) -> None:
        """Give the directory back; doing it twice is harmless."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> "RootLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
