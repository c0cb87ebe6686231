"""A real ZooKeeper server for one machine, from PySpark's jars, for laptops, notebooks and tests.

The server is a child process that listens on 127.0.0.1 or on ``host``, keeps its data in ``data_dir`` over
restarts, and dies with the process that started it. Every transaction is fsynced before it is acknowledged:
epochs fence old leaders, and a server that lost the last transactions in a power cut would assign the same
epoch twice. Metadata changes are rare, so the fsyncs cost little. A killed server recovers from its
transaction log.

    data_dir/zoo.cfg        written at every start
    data_dir/lock           flock'd while the server lives; contains its process id
    data_dir/zookeeper.log  the server's warnings and errors
    data_dir/version-2/     ZooKeeper's snapshots and transaction logs

The server runs in ``data_dir``, and its files have relative paths: it reads its configuration as Latin-1,
which lacks most letters.

A start takes 0.4 s instead of 1.6 s (two cores, Java 17): the client compiler alone and a serial collector
save 0.5 s, a class path of seven jars instead of all of Spark's 0.4 s, log4j's small built-in logger 0.35 s.
While ZooKeeper 3.9 loads, it may accept a four-letter command and then neither answer nor close the
connection (its log then shows a harmless NullPointerException in ``removeCnxn``), so each command has a short
timeout.
"""

import contextlib
import fcntl
import importlib.util
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Final

from sparklog.model.cluster_facts import host_port
from sparklog.model.zookeeper import ZooKeeperError
from sparklog.zookeeper.embedded_tls import FLAGS, JARS, EmbeddedTls
from sparklog.zookeeper.java_environment import java_environment

HOST: Final = "127.0.0.1"
START_TIMEOUT_MS: Final = 30_000
STOP_TIMEOUT_MS: Final = 5_000
TICK_MS: Final = 500
SESSION_TIMEOUT_MIN_MS: Final = 500
SESSION_TIMEOUT_MAX_MS: Final = 120_000
CONFIG_FILE: Final = "zoo.cfg"
DATA: Final = "version-2"
LOG_BYTES_MAX: Final = 4 * 1024 * 1024
_LOG_TAIL_BYTES: Final = 2_000
_QUESTION_TIMEOUT_S: Final = 0.1
_TLS_QUESTION_TIMEOUT_S: Final = 2.0
"""The first handshake loads much of Java."""
_POLL_S: Final = 0.01
_DYING_TIMEOUT_S: Final = 10.0
_PORT_ATTEMPTS_MAX: Final = 5

JAVA_REMEDY: Final = (
    "install Java 17 or newer (on Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless), "
    "or set JAVA_HOME"
)

_REQUIRED_JARS: Final = (
    "zookeeper-[0-9]*.jar",
    "zookeeper-jute-[0-9]*.jar",
    "slf4j-api-*.jar",
    "metrics-core-*.jar",
)
_OPTIONAL_JARS: Final = ("log4j-api-*.jar", "log4j-slf4j2-impl-*.jar", "snappy-java-*.jar")
_MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_JVM_FLAGS: Final = (
    "-Xshare:auto",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xms32m",
    "-Xmx256m",
    "-Djava.awt.headless=true",
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Dzookeeper.preAllocSize=1024",  # KiB by which a transaction log grows; 64 MiB by default
    "-Dlog4j.provider=org.apache.logging.log4j.simple.internal.SimpleProvider",
    "-Dorg.apache.logging.log4j.simplelog.level=WARN",
    "-Dorg.apache.logging.log4j.simplelog.showdatetime=true",
)

_LAUNCHER: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""A script that asks the kernel to kill it with its parent (1 is PR_SET_PDEATHSIG), then becomes the server.

This is a separate process, because Python code between fork and exec is not safe with threads. If the parent
died before the request, no signal follows; the script detects this by the changed parent's process id.
"""

logger: Final = logging.getLogger(__name__)


def find_jars_dir() -> Path:
    """The directory of Spark's jars, in the installed pyspark or in SPARK_HOME."""
    candidates = []
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.submodule_search_locations:
        candidates.append(Path(next(iter(spec.submodule_search_locations))) / "jars")
    if "SPARK_HOME" in os.environ:
        candidates.append(Path(os.environ["SPARK_HOME"]) / "jars")
    for candidate in candidates:
        if any(candidate.glob(_REQUIRED_JARS[0])):
            return candidate
    looked_in = ", ".join(str(candidate) for candidate in candidates) or "no pyspark and no SPARK_HOME"
    raise ZooKeeperError(
        f"no ZooKeeper jars found ({looked_in}): install pyspark, or use a ZooKeeper of your own"
    )


def find_java() -> Path:
    """The Java that Spark would use: that of JAVA_HOME if it is set, else the first in the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if found is None and home:
        raise ZooKeeperError(f"JAVA_HOME={home} has no bin/java: correct it, or unset it")
    if found is None:
        raise ZooKeeperError(f"no java found, which Spark and ZooKeeper need: {JAVA_REMEDY}")
    return Path(found)


class EmbeddedZooKeeper:
    """A ZooKeeper server as a child process. ``port`` 0 takes a free port at the first start and keeps it."""

    def __init__(
        self,
        data_dir: str | Path,
        port: int = 0,
        jars_dir: str | Path | None = None,
        *,
        host: str = HOST,
        tls: EmbeddedTls | None = None,
    ) -> None:
        """With ``tls`` it speaks nothing else."""
        self._tls = tls
        self.data_dir = Path(data_dir)
        self.host = host
        self.port = port
        self._port_is_fixed = port != 0
        self._jars_dir = None if jars_dir is None else Path(jars_dir)
        self._process: subprocess.Popen[bytes] | None = None
        self._exited = threading.Event()

    @property
    def connect_string(self) -> str:
        return host_port(self.host, self.port)

    @property
    def pid(self) -> int | None:
        """The server's process id, None while it does not run."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def exit_status(self) -> int | None:
        """The last process's exit status, as of ``subprocess``; None while it runs or before a start."""
        return None if self._process is None else self._process.returncode

    @property
    def is_running(self) -> bool:
        return self._process is not None and not self._exited.is_set()

    @property
    def log_file(self) -> Path:
        return self.data_dir / "zookeeper.log"

    def __enter__(self) -> "EmbeddedZooKeeper":
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    # ----------------------------------------------------------------------------------------- start

    def start(self, timeout_ms: int = START_TIMEOUT_MS) -> "EmbeddedZooKeeper":
        """Start the server and wait until it serves; raises ZooKeeperError with the reason if it fails."""
        if self.is_running:
            return self
        deadline = time.monotonic() + timeout_ms / 1000
        for attempt in range(_PORT_ATTEMPTS_MAX):
            if not self._port_is_fixed:
                self.port = _free_port(self.host)
            self._refuse_a_port_in_use()
            self._launch()
            if self._serves_before(deadline):
                self._port_is_fixed = True
                return self
            exit_status = self.exit_status
            lost_the_port = not self.is_running and "BindException" in self._log_tail()
            self.kill()
            if self._port_is_fixed or not lost_the_port or attempt == _PORT_ATTEMPTS_MAX - 1:
                break
        how = (
            f"did not start within {timeout_ms} ms"
            if exit_status is None
            else f"ended at its start with exit status {exit_status}"
        )
        raise ZooKeeperError(
            f"ZooKeeper on {self.connect_string} {how}; the end of {self.log_file}:\n{self._log_tail()}"
        )

    def _refuse_a_port_in_use(self) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                raise ZooKeeperError(
                    f"cannot start ZooKeeper on {self.connect_string}: {error.strerror}. "
                    f"Stop what listens there, or choose another port"
                ) from None

    def _launch(self) -> None:
        """Spawn the server from a keeper thread, which then waits for the server's exit.

        To the kernel a parent is a thread: the end of the spawning thread would kill the server.
        """
        command = self._command()
        launched = threading.Event()
        failures: list[OSError] = []
        self._exited = exited = threading.Event()
        with self._lock_data_dir() as lock, self._open_log() as log:
            self._take_misplaced_data()

            def keep() -> None:
                try:
                    self._process = process = _spawn(command, self.data_dir, lock, log)
                except OSError as error:
                    failures.append(error)
                    return
                finally:
                    launched.set()
                code = process.wait()
                exited.set()
                logger.info(
                    "ZooKeeper on %s (process %d) ended with code %d", self.connect_string, process.pid, code
                )

            threading.Thread(target=keep, name=f"zookeeper-{self.port}-keeper", daemon=True).start()
            launched.wait()
            if failures:
                raise ZooKeeperError(f"cannot run {command[0]}: {failures[0]}")
            if self._process is not None:
                _write_pid(lock, self._process.pid)

    def _lock_data_dir(self) -> IO[bytes]:
        """Lock the directory. The server inherits the lock, and holds it until its process has ended."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        lock = (self.data_dir / "lock").open("a+b")
        deadline = time.monotonic() + _DYING_TIMEOUT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except BlockingIOError:
                lock.seek(0)
                holder = lock.read(32).decode("ascii", "replace").strip() or "unknown"
            if not _is_dying(holder) or time.monotonic() > deadline:
                lock.close()
                raise ZooKeeperError(
                    f"{self.data_dir} is in use by another ZooKeeper (process {holder}): stop it, "
                    f"or choose another directory"
                )
            time.sleep(_POLL_S)

    def _open_log(self) -> IO[bytes]:
        if self.log_file.exists() and self.log_file.stat().st_size > LOG_BYTES_MAX:
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
        return self.log_file.open("ab")

    def _command(self) -> list[str]:
        jars_dir = (self._jars_dir or find_jars_dir()).absolute()
        patterns = (*_REQUIRED_JARS, *_OPTIONAL_JARS, *(JARS if self._tls else ()))
        jars = [jar for pattern in patterns for jar in sorted(jars_dir.glob(pattern))]
        for pattern in _REQUIRED_JARS:
            if not any(jars_dir.glob(pattern)):
                raise ZooKeeperError(f"{jars_dir} has no {pattern}: is it the jars folder of a Spark?")
        class_path = os.pathsep.join(str(jar) for jar in jars)
        self._write_config()
        flags = (*_JVM_FLAGS, *(FLAGS if self._tls else ()))
        return [str(find_java().absolute()), *flags, "-cp", class_path, _MAIN_CLASS, f"./{CONFIG_FILE}"]

    def _write_config(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        settings = {
            "dataDir": "./.",  # a bare dot has ZooKeeper's check of relative paths fail
            "secureClientPort" if self._tls else "clientPort": str(self.port),
            "secureClientPortAddress" if self._tls else "clientPortAddress": self.host,
            "tickTime": str(TICK_MS),
            "minSessionTimeout": str(SESSION_TIMEOUT_MIN_MS),
            "maxSessionTimeout": str(SESSION_TIMEOUT_MAX_MS),
            "maxClientCnxns": "0",  # all clients share one address here, and the default limit is 60
            "admin.enableServer": "false",  # Spark ships no jetty that it could use
            "4lw.commands.whitelist": "ruok,srvr,mntr",
            "autopurge.snapRetainCount": "3",
            "autopurge.purgeInterval": "1",
        }
        settings |= {} if self._tls is None else self._tls.write(self.data_dir)
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.data_dir / CONFIG_FILE).write_text(text, encoding="ascii")

    def _take_misplaced_data(self) -> None:
        """Move data here from where earlier releases had it: their path was UTF-8, read as Latin-1."""
        own = self.data_dir.resolve()
        misread = Path(os.fsencode(own).decode("latin-1"))
        if misread != own and (misread / DATA).is_dir() and not (own / DATA).exists():
            shutil.move(misread / DATA, own / DATA)

    def _serves_before(self, deadline: float) -> bool:
        while time.monotonic() < deadline:
            if _ask(self.host, self.port, b"srvr", self._tls).find(b"Mode: ") >= 0:
                return self.is_running
            if self._exited.wait(_POLL_S):
                return False
        return False

    def _log_tail(self) -> str:
        if not self.log_file.exists():
            return ""
        return self.log_file.read_bytes()[-_LOG_TAIL_BYTES:].decode("utf-8", "replace")

    # ------------------------------------------------------------------------------------------ stop

    def stop(self, timeout_ms: int = STOP_TIMEOUT_MS) -> None:
        """Stop the server, or kill it after ``timeout_ms``. Its data stays."""
        self._signal(signal.SIGTERM)
        if self.is_running and not self._exited.wait(timeout_ms / 1000):
            logger.warning(
                "ZooKeeper on %s did not stop within %d ms: killed", self.connect_string, timeout_ms
            )
            self.kill()

    def kill(self) -> None:
        """Kill the server with SIGKILL, to simulate a crash."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._exited.wait()

    def _signal(self, number: int) -> None:
        if self._process is not None and self.is_running:
            with contextlib.suppress(ProcessLookupError):  # ended just now
                self._process.send_signal(number)


def _spawn(command: list[str], directory: Path, lock: IO[bytes], log: IO[bytes]) -> subprocess.Popen[bytes]:
    if sys.platform.startswith("linux") and sys.executable:
        command = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]
    return subprocess.Popen(
        command,
        cwd=directory,
        env=java_environment(),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(lock.fileno(),),
        start_new_session=True,  # Ctrl-C is for the brokers, which need ZooKeeper for a tidy stop
    )


def _is_dying(holder: str) -> bool:
    """Whether the holder was killed and is exiting: a JVM's last threads keep the lock for a moment."""
    if sys.platform != "linux" or not holder.isdecimal():
        return False
    try:
        return Path(f"/proc/{holder}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


def _write_pid(lock: IO[bytes], pid: int) -> None:
    lock.truncate(0)
    lock.write(f"{pid}\n".encode())
    lock.flush()


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def _ask(host: str, port: int, command: bytes, tls: EmbeddedTls | None) -> bytes:
    """The answer to a four-letter command; empty while the server does not answer."""
    try:
        if tls is not None:
            return tls.ask(host, port, command, _TLS_QUESTION_TIMEOUT_S)
        with socket.create_connection((host, port), timeout=_QUESTION_TIMEOUT_S) as connection:
            connection.sendall(command)
            return b"".join(iter(lambda: connection.recv(4_096), b""))
    except OSError:  # refused, reset or silent: it is still starting
        return b""
