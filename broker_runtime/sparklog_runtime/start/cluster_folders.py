"""The folders of one cluster's root directory, and the lock that keeps a second start out of it.

    DIR/lock              held (flock) while the cluster runs; contains the holder's process id
    DIR/cluster.json      where the cluster listens and which processes serve it, while it runs
    DIR/defaults.properties  what the first start chose for the cluster's topics
    DIR/zookeeper/        the embedded ZooKeeper's data, and zookeeper.log
    DIR/broker-N/0, 1...  the log directories of broker N
    DIR/logs/             spark.log, spark-output.log, broker-N.log, controller.log, page.log
    DIR/audit/            broker-N.jsonl, controller.jsonl
    DIR/spark/            Spark's scratch space; emptied at every start

The lock is the kernel's: it goes away with the process that held it, however that ended. A start that is
refused takes it back without a trace (``withdraw``): the file and the folders that it made for it go, too.
"""

import contextlib
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
    def audit(self) -> dict[str, str]:
        """The setting that has servers write their audit here."""
        return {"audit.log.dir": str(self.root / "audit")}

    @property
    def defaults_file(self) -> Path:
        return self.root / "defaults.properties"

    @property
    def zookeeper(self) -> Path:
        return self.root / "zookeeper"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def events_file(self) -> Path:
        """The events of our controller."""
        return self.logs / "events.jsonl"

    @property
    def spark_log(self) -> Path:
        """Spark's own log, from its logging library."""
        return self.logs / "spark.log"

    @property
    def spark_output(self) -> Path:
        """What Spark's processes write to standard output and standard error."""
        return self.logs / "spark-output.log"

    @property
    def page_log(self) -> Path:
        return self.logs / "page.log"

    @property
    def output_files(self) -> tuple[Path, ...]:
        """What other programs write to as long as they run."""
        return self.spark_output, self.zookeeper / "zookeeper.log"

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


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


class RootLock:
    """Exclusive use of a root directory, from construction to ``release``."""

    def __init__(self, layout: Layout) -> None:
        self._path = layout.root / "lock"
        self._made: list[Path] = [path for path in (layout.root, *layout.root.parents) if not path.exists()]
        self.is_new = not self._path.exists()
        """Whether no start has used the directory before."""
        self._fd = -1
        while self._fd < 0:
            self._fd = self._take(layout.root)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode("ascii"), 0)

    def _take(self, root: Path) -> int:
        """The locked file's descriptor; -1 if the file was withdrawn while we reached for it."""
        try:
            root.mkdir(parents=True, exist_ok=True)
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise SparklogError(
                f"root directory {root} cannot be used: {error.strerror}; choose another with --root"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise RootInUse(
                f"root directory {root} is in use by process {holder}; "
                "stop that cluster first, or choose another directory with --root"
            ) from None
        if _is_at(fd, self._path):
            return fd
        os.close(fd)
        return -1

    def withdraw(self) -> None:
        """Give the directory back as it was found."""
        if self._fd >= 0 and self.is_new:
            self._path.unlink(missing_ok=True)
            for path in self._made:
                with contextlib.suppress(OSError):  # another process has put something into it meanwhile
                    path.rmdir()
        self.release()

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
