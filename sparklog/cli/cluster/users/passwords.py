"""Where a command has a password from: the first line of a file, or the terminal. No option has one, because
command lines are seen by others. A file that others may open is taken with a warning, because its user may
delete it at once.
"""

import getpass
import sys
from pathlib import Path

from sparklog.cli.command import UsageError
from sparklog.cli.progress import say
from sparklog.credentials.secret_files import read_file
from sparklog.model.errors import SparklogError


def read_password(path: Path | None, user: str) -> str:
    """UsageError without a file and a terminal; SparklogError for a file without a password."""
    if path is not None:
        return _from_file(path)
    if not sys.stdin.isatty():
        raise UsageError("which password? give --password-file FILE, whose first line has it")
    password = getpass.getpass(f"password of {user}: ")
    if not password:
        raise SparklogError("an empty password is none; type one")
    if getpass.getpass("again: ") != password:
        raise SparklogError("the two passwords differ; nothing is changed")
    return password


def _from_file(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SparklogError(f"--password-file {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SparklogError(f"--password-file {path} is no text in UTF-8: byte {error.start}") from None
    _warn_if_open(path)
    if not lines or not lines[0]:
        raise SparklogError(f"--password-file {path}: its first line is empty; write the password into it")
    return lines[0]


def _warn_if_open(path: Path) -> None:
    """A pipe, as of ``<(pass alice)``, is nobody else's."""
    if path.is_file():
        exposure = read_file(str(path)).exposure()
        if exposure is not None:
            say(f"warning: --password-file: {exposure}")
