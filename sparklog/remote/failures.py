"""What fsspec's file systems raise, as the failures of the port."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sparklog.remote.store import Failure, RemoteStoreError

TEXT_LENGTH_MAX: Final = 300
"""Most characters of the store's own words: HDFS answers with whole Java stack traces."""

_BY_ERRNO: Final = {
    errno.ENOENT: Failure.MISSING,
    errno.ENOTDIR: Failure.MISSING,
    errno.EEXIST: Failure.EXISTS,
    errno.EACCES: Failure.REFUSED,
    errno.EPERM: Failure.REFUSED,
    errno.EROFS: Failure.REFUSED,
    errno.ENOSPC: Failure.FULL,
    errno.EDQUOT: Failure.FULL,
    errno.EFBIG: Failure.FULL,
}

_BY_WORD: Final = {
    "PreconditionFailed": Failure.EXISTS,
    "ConditionalRequestConflict": Failure.EXISTS,
    "FileAlreadyExistsException": Failure.EXISTS,
    "FileNotFoundException": Failure.MISSING,
    "NoSuchBucket": Failure.MISSING,
    "NoSuchKey": Failure.MISSING,
    "InvalidRange": Failure.SHORT,
    "AccessControlException": Failure.REFUSED,
    "SafeModeException": Failure.REFUSED,
    "Name node is in safe mode": Failure.REFUSED,
    "SignatureDoesNotMatch": Failure.REFUSED,
    "RequestTimeTooSkewed": Failure.REFUSED,
    "Unable to locate credentials": Failure.REFUSED,
    "There are 0 datanode(s) running": Failure.AWAY,
    "QuotaExceeded": Failure.FULL,
    "StorageFull": Failure.FULL,
    "InsufficientStorage": Failure.FULL,
    "could only be written to 0 of": Failure.FULL,
    "EndpointConnectionError": Failure.AWAY,
    "ConnectTimeoutError": Failure.AWAY,
    "ReadTimeoutError": Failure.AWAY,
    "Connection refused": Failure.AWAY,
    "Temporary failure in name resolution": Failure.AWAY,
    "failed to lookup address": Failure.AWAY,
}
"""Words in the names and texts of errors that Python's own exception types do not tell apart."""


def failure_of(error: BaseException) -> Failure:
    """The kind of failure that a store's exception, or one of its causes, tells of."""
    seen: BaseException | None = error
    while seen is not None:
        for word, failure in _BY_WORD.items():
            if word in type(seen).__name__ or word in str(seen) or word == _code_of(seen):
                return failure
        if isinstance(seen, OSError) and seen.errno in _BY_ERRNO:
            return _BY_ERRNO[seen.errno]
        for kind, failure in _BY_TYPE:
            if isinstance(seen, kind):
                return failure
        seen = seen.__cause__
    return Failure.OTHER


_BY_TYPE: Final[tuple[tuple[type[BaseException], Failure], ...]] = (
    (FileNotFoundError, Failure.MISSING),
    (FileExistsError, Failure.EXISTS),
    (PermissionError, Failure.REFUSED),
    (TimeoutError, Failure.AWAY),
    (ConnectionError, Failure.AWAY),
)


def _code_of(error: BaseException) -> str:
    """The code of a botocore ClientError; empty for others."""
    response = getattr(error, "response", None)
    problem = response.get("Error", {}) if isinstance(response, dict) else {}
    return str(problem.get("Code", ""))


@contextmanager
def as_store_errors(doing: str) -> Iterator[None]:
    """Raise what the block raises as a RemoteStoreError that begins with ``doing``."""
    try:
        yield
    except RemoteStoreError:
        raise
    except Exception as error:  # the libraries raise their own types, and bare RuntimeErrors
        words = " ".join(str(error).split())[:TEXT_LENGTH_MAX] or type(error).__name__
        code = _code_of(error.__cause__ or error)
        named = f"{code}: " if code and code not in words else ""
        raise RemoteStoreError(failure_of(error), f"{doing}: {named}{words}") from error
