"""``webhdfs://``: HDFS by its REST calls, for networks that let nothing else through.

fsspec's own ``webhdfs`` takes a refused rename for a done one, and cannot create exclusively; so the calls
are ours. A rename asks for ``renameoptions=NONE``, with which HDFS answers a taken name with an error. The
protocol has no sync: durable is what DataNodes have when ``dfs.datanode.synconclose`` is set there.

The user is HADOOP_USER_NAME's; Kerberos is not spoken.
"""

import http.client
import json
import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from sparklog.remote.file_store import FileStore
from sparklog.remote.locate import StoreUrl
from sparklog.remote.patience import Stop

DEFAULT_PORT: Final = 9870
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""Most bytes of an answer in JSON, such as a folder's listing."""


class _Upload:
    """A file that is written: created empty, then appended to, a block at a time. Nothing stays open."""

    def __init__(self, store: "WebHdfsStore", path: str) -> None:
        self._store = store
        self._path = path

    def write(self, block: bytes) -> None:
        if block:
            self._store.send_block(self._path, block)

    def close(self) -> None:
        pass


class WebHdfsStore(FileStore):
    def __init__(self, url: StoreUrl, timeout_s: float, stop: Stop) -> None:
        super().__init__(url, timeout_s, stop)
        self._user = os.environ.get("HADOOP_USER_NAME")

    def send_block(self, path: str, block: bytes) -> None:
        """Append to a file that this store is writing."""
        self._transfer("POST", path, "APPEND", block)

    def _create(self, path: str) -> Any:
        self._transfer("PUT", path, "CREATE", b"", overwrite="false")
        return _Upload(self, path)

    def _sync_and_close(self, file: Any) -> None:
        file.close()

    def _rename(self, source: str, target: str) -> None:
        self._ask("PUT", target.rpartition("/")[0], "MKDIRS")
        self._ask("PUT", source, "RENAME", destination=target, renameoptions="NONE")

    def _read(self, path: str, start: int, length: int) -> bytes:
        size: int = self._ask("GET", path, "GETFILESTATUS")["FileStatus"]["length"]
        wanted = min(length, max(0, size - start))
        if not wanted:
            return b""
        return self._transfer("GET", path, "OPEN", None, wanted, offset=str(start), length=str(wanted))

    def _files(self, path: str) -> list[str]:
        found: list[str] = []
        folders = [path or "/"]
        while folders:
            folder = folders.pop()
            for status in self._ask("GET", folder, "LISTSTATUS")["FileStatuses"]["FileStatus"]:
                below = f"{folder.rstrip('/')}/{status['pathSuffix']}"
                (folders if status["type"] == "DIRECTORY" else found).append(below)
        return found

    def _remove(self, path: str) -> None:
        if not self._ask("DELETE", path, "DELETE")["boolean"]:
            raise FileNotFoundError(path)

    def _ask(self, method: str, path: str, operation: str, **options: str) -> Any:
        """The JSON answer of the NameNode; OSError with HDFS's words for a refusal."""
        status, _, body = self._send(method, self._address(), self._query(path, operation, options), None)
        if status != http.client.OK:
            raise _refusal(status, body)
        return json.loads(body) if body else None

    def _transfer(
        self,
        method: str,
        path: str,
        operation: str,
        data: bytes | None,
        bytes_max: int = ANSWER_BYTES_MAX,
        **options: str,
    ) -> bytes:
        """Send to, or get from, the DataNode that the NameNode names; the bytes of its answer."""
        query = self._query(path, operation, {**options, "noredirect": "true"})
        status, _, body = self._send(method, self._address(), query, None)
        if status != http.client.OK:
            raise _refusal(status, body)
        there = urlsplit(json.loads(body)["Location"])
        address = (there.hostname or "", there.port or http.client.HTTP_PORT)
        target = f"{there.path}?{there.query}"
        status, _, body = self._send(method, address, target, data, bytes_max)
        if status not in (http.client.OK, http.client.CREATED):
            raise _refusal(status, body)
        return body

    def _address(self) -> tuple[str, int]:
        return self._url.host, self._url.port or DEFAULT_PORT

    def _query(self, path: str, operation: str, options: Mapping[str, str]) -> str:
        user = {"user.name": self._user} if self._user else {}
        return f"/webhdfs/v1{quote(path)}?{urlencode({'op': operation, **user, **options})}"

    def _send(
        self,
        method: str,
        address: tuple[str, int],
        target: str,
        data: bytes | None,
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> tuple[int, Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection(*address, timeout=self._timeout_s)
        try:
            headers = {} if data is None else {"Content-Type": "application/octet-stream"}
            connection.request(method, target, body=data, headers=headers)
            answer = connection.getresponse()
            body = answer.read(bytes_max + 1)
            if len(body) > bytes_max:
                raise OSError(f"an answer of more than {bytes_max} bytes")
            return answer.status, dict(answer.getheaders()), body
        finally:
            connection.close()


def _refusal(status: int, body: bytes) -> OSError:
    try:
        problem = json.loads(body)["RemoteException"]
        return OSError(f"{problem['exception']}: {problem['message']}")
    except (ValueError, KeyError, TypeError):
        return OSError(f"HTTP status {status}")
