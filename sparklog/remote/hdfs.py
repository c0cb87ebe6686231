"""``hdfs://``: HDFS by hdfs-native through fsspec, without Java.

A file is synced (``hsync``) before it is closed, because a close alone leaves the last block in the memory of
DataNodes. Folders with erasure coding refuse the sync, and so are refused as stores. Settings are read from
HADOOP_CONF_DIR, the user is HADOOP_USER_NAME's or that of Kerberos.
"""

import io
from typing import Any

from sparklog.model.errors import ConfigError
from sparklog.remote.file_store import FileStore
from sparklog.remote.locate import StoreUrl
from sparklog.remote.patience import Stop


class HdfsStore(FileStore):
    def __init__(self, url: StoreUrl, timeout_s: float, stop: Stop) -> None:
        super().__init__(url, timeout_s, stop)
        try:
            import hdfs_native.fsspec  # an extra, and never loaded before a process forks
        except ImportError as error:
            raise ConfigError(f"{url} needs hdfs-native ({error}); pip install 'sparklog[hdfs]'") from None
        host_and_port = {"host": url.host, "port": url.port}
        self._hdfs = self._do(
            f"{url} cannot be opened",
            lambda: hdfs_native.fsspec.HdfsFileSystem(**host_and_port, skip_instance_cache=True),
        )

    def _create(self, path: str) -> Any:
        writer = self._hdfs.open(path, "wb", overwrite=False)
        # Tell its finaliser, and nothing else, that it is closed: a finaliser that closes the file waits for
        # HDFS in whatever thread collects garbage.
        io.RawIOBase.close(writer)
        return writer

    def _sync_and_close(self, file: Any) -> None:
        file.hsync()
        file.close()

    def _rename(self, source: str, target: str) -> None:
        self._hdfs.mkdir(target.rpartition("/")[0])
        self._hdfs.mv(source, target, overwrite=False)

    def _read(self, path: str, start: int, length: int) -> bytes:
        with self._hdfs.open(path, "rb") as file:
            wanted = min(length, max(0, len(file) - start))
            return bytes(file.read_range(start, wanted)) if wanted else b""

    def _files(self, path: str) -> list[str]:
        found = self._hdfs.client.list_status(path, True)
        return [status.path for status in found if not status.isdir]

    def _remove(self, path: str) -> None:
        if not self._hdfs.client.delete(path, False):
            raise FileNotFoundError(path)
