"""What a broker's process checks on its host before it opens anything there: its log directories.

Spark deletes its own folders: a standalone worker the directory of an application that has ended, YARN the
container's. Log directories in them would be lost with the executor, therefore they are refused.
"""

import getpass
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from sparklog.model.errors import ConfigError

_STANDALONE_PREFIX: Final = "app-"
"""A standalone worker runs an executor in ``WORK-DIR/app-…/NUMBER``."""

_FOLDERS_VARIABLES: Final = ("SPARK_EXECUTOR_DIRS", "LOCAL_DIRS")
"""Scratch folders: of a standalone worker's executor, split by colons, and of a YARN container, by commas."""

_CONTAINER_VARIABLES: Final = ("CONTAINER_ID", "SPARK_EXECUTOR_POD_IP")
"""Set in containers of YARN, and in pods of Kubernetes."""


def spark_folders(working_directory: Path, variables: Mapping[str, str]) -> list[Path]:
    """The folders of this executor that Spark deletes; none where Spark runs in one JVM."""
    found = [
        Path(folder)
        for name in _FOLDERS_VARIABLES
        for folder in variables.get(name, "").replace(",", ":").split(":")
        if folder
    ]
    if found and working_directory.parent.name.startswith(_STANDALONE_PREFIX):
        found.append(working_directory.parents[1])
    if "CONTAINER_ID" in variables:  # YARN's
        found.append(working_directory)
    return found


def is_executor(variables: Mapping[str, str]) -> bool:
    """Whether this process belongs to an executor of a cluster, rather than to Spark in one JVM."""
    return any(name in variables for name in (*_FOLDERS_VARIABLES, *_CONTAINER_VARIABLES))


def refuse_log_dirs(log_dirs: Sequence[str], folders: Iterable[Path], host: str) -> None:
    """ConfigError if a directory is in one of Spark's ``folders``, or if none of them can be written.

    A broker serves on without a directory that fails, as long as another works.
    """
    for log_dir in log_dirs:
        for folder in folders:
            if Path(os.path.realpath(log_dir)).is_relative_to(os.path.realpath(folder)):
                raise ConfigError(
                    f"host {host}: log.dirs names {log_dir}, but Spark deletes what is in {folder}: "
                    "name a directory outside of it in log.dirs"
                )
    problems = [problem for log_dir in log_dirs if (problem := _write_problem(log_dir)) is not None]
    if len(problems) == len(log_dirs):
        raise ConfigError(
            f"host {host}: no directory of log.dirs can be written by user {getpass.getuser()}: "
            f"{'; '.join(problems)}: make it, for that user, or name another in log.dirs"
        )


def _write_problem(log_dir: str) -> str | None:
    try:
        os.makedirs(log_dir, exist_ok=True)
        with tempfile.TemporaryFile(dir=log_dir):
            return None
    except OSError as error:
        return f"{log_dir}: {error.strerror}"
