"""URLs of stores, and names of objects, checked before anything is opened.

A URL is ``file:///folder``, ``hdfs://host:port/folder``, ``webhdfs://host:port/folder`` or
``s3://bucket/folder``. It has no user and no password, because URLs are logged, and no query.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from sparklog.model.errors import ConfigError

SCHEMES: Final = ("file", "hdfs", "s3", "webhdfs")
NAME_BYTES_MAX: Final = 900
"""S3 takes 1,024 bytes for a key, with the folder of the URL."""

_NAME: Final = re.compile(r"[A-Za-z0-9._=-]+(/[A-Za-z0-9._=-]+)*")


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A store's URL, taken apart. ``folder`` begins with a slash, and does not end with one."""

    scheme: str
    host: str
    """The bucket, for s3; empty for file."""
    port: int | None
    folder: str

    def __str__(self) -> str:
        port = f":{self.port}" if self.port else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{port}{self.folder}"


def parse_store_url(text: str) -> StoreUrl:
    """ConfigError, with the remedy, for a URL that names no store or holds a secret."""
    if "@" in text:
        raise ConfigError(
            f"the store's URL, which ends with {text.rpartition('@')[2]!r}, has a user or a password before "
            "its '@', and URLs are logged; leave it out: S3 takes its keys from the environment or ~/.aws, "
            "HDFS its user from HADOOP_USER_NAME"
        )
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"the store's URL {text!r} cannot be read: {error}; write host:port") from None
    host = parts.netloc if port is None else parts.netloc.rpartition(":")[0]
    host = host.removesuffix(":").removeprefix("[").removesuffix("]")
    folder = unquote(parts.path).rstrip("/")
    problem = _problem(parts, host, port, folder)
    if problem is not None:
        raise ConfigError(f"the store's URL {text!r} {problem}")
    return StoreUrl(parts.scheme, host, port, folder)


def _problem(parts: SplitResult, host: str, port: int | None, folder: str) -> str | None:
    """What is wrong with a URL, and what to do; None if it names a store."""
    scheme = parts.scheme
    if scheme not in SCHEMES:
        return f"does not begin with one of {'://, '.join(SCHEMES)}://"
    if parts.query or parts.fragment:
        return "has '?' or '#' in it; give host and folder only"
    if ".." in folder.split("/"):
        return "has '..' in it; write the folder itself"
    if scheme == "file":
        if host or not folder.startswith("/"):
            return "names a host or no folder; write file:///folder, with three slashes"
        return None
    if not host:
        return f"does not name {'a bucket' if scheme == 's3' else 'a host'}; write {scheme}://NAME/folder"
    if scheme == "s3" and port is not None:
        return "names a port, and a bucket has none; set AWS_ENDPOINT_URL to your server's address"
    return None


def check_name(name: str) -> str:
    """``name``, if it can be an object's name in every store; else ValueError, because names are our own."""
    parts = name.split("/")
    if not _NAME.fullmatch(name) or len(name) > NAME_BYTES_MAX or {".", ".."} & set(parts):
        raise ValueError(f"{name!r} cannot be an object's name: letters, digits, '._=-', folders by '/'")
    return name
