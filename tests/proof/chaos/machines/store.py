"""The remote store of a run: S3Proxy, a server of S3's protocol, with its objects as files.

Its jars are fetched by ``scripts/remote-setup``. It is killed, so its objects are files: a server that has
them in memory would lose what it has acknowledged.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from chaos.machines.loop_disk import LoopDisk
from chaos.machines.processes import Kept

NAME: Final = "s3proxy-4.1.0"
NODE: Final = "store"
PORT: Final = 9000
BUCKET: Final = "history"
URL: Final = f"s3://{BUCKET}/chaos"
DISK_MEBIBYTES: Final = 256
_JAVA: Final = ("java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def _jars() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SPARKLOG_REMOTE_CACHE") or Path(cache) / "sparklog-remote") / NAME


def probe() -> str | None:
    """Why there can be no store; None if there can."""
    if shutil.which("java") is None:
        return "there is no java"
    return None if _jars().is_dir() else f"{NAME} is not there: scripts/remote-setup fetches it"


class Store:
    """Started again whenever it ends, ``pause_s`` later."""

    def __init__(
        self,
        folder: Path,
        address: str,
        command: Callable[[Sequence[str]], list[str]],
        say: Callable[[str], None],
        *,
        has_disk: bool,
        port: int = PORT,
    ) -> None:
        """``has_disk``: a file system of its own, which can be full."""
        self.disk: LoopDisk | None = None
        self._url = f"http://{address}:{port}"
        objects = folder / "store" / "objects"
        objects.mkdir(parents=True)
        if has_disk:
            self.disk = LoopDisk(folder / "store" / "image", objects, DISK_MEBIBYTES)
            self.disk.make()
        (objects / BUCKET).mkdir()
        conf = folder / "store" / "s3proxy.conf"
        conf.write_text(
            f"s3proxy.endpoint={self._url}\n"
            "s3proxy.authorization=none\n"
            "jclouds.provider=filesystem-nio2\n"
            f"jclouds.filesystem.basedir={objects}\n"
        )
        main = ["-cp", f"{_jars()}/*", "org.gaul.s3proxy.Main", "--properties", str(conf)]
        self.kept = Kept("store", command([*_JAVA, *main]), folder, None, say)

    @property
    def environment(self) -> Mapping[str, str]:
        """Of brokers, for S3's client: it reads neither keys nor places of this machine."""
        return {
            "AWS_ENDPOINT_URL": self._url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def stop(self) -> None:
        self.kept.stop(5.0)
        if self.disk is not None:
            self.disk.put_away()
