"""``s3://``: S3 and what speaks its protocol, by s3fs.

An object is refused if its name is taken (``If-None-Match``), which S3 itself decides. Small objects are one
request, larger ones a multipart upload that becomes visible as a whole when it is completed and is aborted
when it is cut. Keys, region and endpoint are those of botocore's environment (AWS_ENDPOINT_URL, ~/.aws).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

from sparklog.model.errors import ConfigError
from sparklog.remote.blocks import BLOCK_BYTES, blocks_of
from sparklog.remote.failures import as_store_errors
from sparklog.remote.locate import StoreUrl, check_name
from sparklog.remote.patience import Stop, within
from sparklog.remote.store import Failure, RemoteStoreError

TRIES: Final = 2

T = TypeVar("T")


class S3Store:
    """Implements ``RemoteStore``."""

    def __init__(self, url: StoreUrl, timeout_s: float, stop: Stop) -> None:
        try:
            import s3fs  # an extra, whose thread must begin after a process forks
        except ImportError as error:
            raise ConfigError(f"{url} needs s3fs ({error}); pip install 'sparklog[s3]'") from None
        self._url = url
        self._root = f"{url.host}{url.folder}"
        self._timeout_s = timeout_s
        self._stop = stop
        config = {
            "connect_timeout": timeout_s / (TRIES + 1),
            "read_timeout": timeout_s / (TRIES + 1),
            "retries": {"total_max_attempts": 1},
        }
        self._s3 = s3fs.S3FileSystem(
            use_listings_cache=False, skip_instance_cache=True, config_kwargs=config, max_concurrency=2
        )
        self._s3.retries = TRIES

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        path = f"{self._root}/{check_name(name)}"
        doing = f"{name} cannot be written to {self._url}"
        blocks = blocks_of(pieces)
        first = next(blocks)
        second = next(blocks, None)
        if second is None:
            self._do(doing, lambda: self._s3.pipe_file(path, first, mode="create"))
            return len(first)
        return self._put_in_blocks(path, doing, first, second, blocks)

    def _put_in_blocks(
        self, path: str, doing: str, first: bytes, second: bytes, others: Iterator[bytes]
    ) -> int:
        file = self._do(doing, lambda: self._s3.open(path, "xb", block_size=BLOCK_BYTES))
        try:
            size = 0
            for some in (iter((first, second)), others):
                for block in some:
                    self._do(doing, partial(file.write, block))
                    size += len(block)
            self._do(doing, file.close)
        except BaseException:
            self._discard(file)
            raise
        return size

    def _discard(self, file: Any) -> None:
        """Abort an upload. What cannot be aborted now is never visible; the bucket's rule ends it."""
        file.closed = True  # else its finaliser would complete it
        try:
            self._do("", file.discard)
        except RemoteStoreError:
            return

    def read(self, name: str, start: int, length: int) -> bytes:
        path = f"{self._root}/{check_name(name)}"
        doing = f"{name} cannot be read from {self._url}"
        if not length:
            return b""
        data: bytes = self._do(doing, lambda: self._s3.cat_file(path, start=start, end=start + length))
        if len(data) != length:
            raise RemoteStoreError(
                Failure.SHORT, f"{doing}: {len(data)} bytes from byte {start}, not {length}: it is truncated"
            )
        return data

    def names(self, folder: str) -> list[str]:
        path = f"{self._root}/{check_name(folder)}" if folder else self._root
        doing = f"{folder or '/'} cannot be listed in {self._url}"
        found: list[str] = self._do(doing, lambda: self._listed(f"{path}/"))
        return sorted(name.removeprefix(f"{self._root}/") for name in found)

    def _listed(self, prefix: str) -> list[str]:
        bucket, _, key = prefix.partition("/")
        found: list[str] = []
        token: dict[str, str] = {}
        while True:
            page = self._s3.call_s3("list_objects_v2", Bucket=bucket, Prefix=key, **token)
            found += [f"{bucket}/{one['Key']}" for one in page.get("Contents", ())]
            if not page.get("IsTruncated"):
                return found
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def delete(self, name: str) -> None:
        path = f"{self._root}/{check_name(name)}"
        self._do(f"{name} cannot be deleted from {self._url}", lambda: self._s3.rm_file(path))

    def _do(self, doing: str, call: Callable[[], T]) -> T:
        with as_store_errors(doing):
            return within(self._timeout_s * TRIES, doing, call, self._stop)
