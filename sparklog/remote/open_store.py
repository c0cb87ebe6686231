"""Opens the store that a URL names. Libraries are imported here, on first use: after any fork."""

from typing import Final

from sparklog.remote.hdfs import HdfsStore
from sparklog.remote.local import LocalStore
from sparklog.remote.locate import parse_store_url
from sparklog.remote.s3 import S3Store
from sparklog.remote.store import RemoteStore
from sparklog.remote.webhdfs import WebHdfsStore

TIMEOUT_S: Final = 30.0


def open_store(url: str, timeout_s: float = TIMEOUT_S) -> RemoteStore:
    """The store. ConfigError for a URL that names none, or whose library is not installed.

    Nothing is sent yet, but that HDFS's library may look up its host. ``timeout_s`` bounds each step.
    """
    parsed = parse_store_url(url)
    match parsed.scheme:
        case "hdfs":
            return HdfsStore(parsed, timeout_s)
        case "webhdfs":
            return WebHdfsStore(parsed, timeout_s)
        case "s3":
            return S3Store(parsed, timeout_s)
        case _:
            return LocalStore(parsed, timeout_s)
