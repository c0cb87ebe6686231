"""Opens the store that a URL names. Libraries are imported here, on first use: after any fork."""

from typing import Final

from sparklog.remote.hdfs import HdfsStore
from sparklog.remote.local import LocalStore
from sparklog.remote.locate import parse_store_url
from sparklog.remote.patience import Stop
from sparklog.remote.s3 import S3Store
from sparklog.remote.store import RemoteStore
from sparklog.remote.webhdfs import WebHdfsStore

TIMEOUT_S: Final = 30.0


def open_store(url: str, timeout_s: float = TIMEOUT_S, stop: Stop | None = None) -> RemoteStore:
    """The store. ConfigError for a URL that names none, or whose library is not installed.

    Nothing is sent yet, but that HDFS's library may look up its host. ``timeout_s`` bounds each step,
    and ``stop`` ends all of them.
    """
    parsed = parse_store_url(url)
    stop = stop or Stop()
    match parsed.scheme:
        case "hdfs":
            return HdfsStore(parsed, timeout_s, stop)
        case "webhdfs":
            return WebHdfsStore(parsed, timeout_s, stop)
        case "s3":
            return S3Store(parsed, timeout_s, stop)
        case _:
            return LocalStore(parsed, timeout_s, stop)
