"""The demo's folder: emptied by the next demo, unless its data may be wanted.

A demo marks the folder that it makes. Only a marked folder is ever emptied, and the mark goes as soon as the
data may be wanted: when a demo ran with ``--keep``, or when ``sparklog start`` has run on it.
"""

import shlex
import shutil
from itertools import count
from pathlib import Path
from typing import Final

from sparklog.model.errors import SparklogError
from sparklog_runtime.start.cluster_folders import Layout, RootLock

MARKER: Final = ".sparklog-demo"


def take_demo_folder(folder: Path) -> None:
    """Make the folder, or empty the one that an earlier demo left; SparklogError if it is not for us."""
    if not folder.exists():
        folder.mkdir(parents=True)
    elif any(folder.iterdir()) and not (folder / MARKER).exists():
        raise SparklogError(_why_not(folder))
    else:
        _empty(folder)
    (folder / MARKER).touch()


def _why_not(folder: Path) -> str:
    """Why a folder is left alone, and what to do; RootInUse while a cluster runs there."""
    another = f"sparklog demo --root {shlex.quote(str(_unused(folder)))}"
    if not (folder / "lock").is_file():
        return (
            f"{folder} is not empty and is left alone, as no demo made it; choose another folder: {another}"
        )
    with RootLock(Layout.at(folder)):
        pass
    return (
        f"{folder} has a cluster's data, which no demo empties since `sparklog start` ran on it, or a demo "
        f"was told to --keep it. For a new demo choose another folder: {another}; or, if nobody wants the "
        f"data, remove it first: rm -r {shlex.quote(str(folder))}. To go on with it: {start_command(folder)}"
    )


def _unused(folder: Path) -> Path:
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(one for one in numbered if not one.exists())


def _empty(folder: Path) -> None:
    with RootLock(Layout.at(folder)):  # refused while a cluster runs there
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != "lock":
                entry.unlink()


def keep_from_demos(folder: Path) -> None:
    """From now on, no demo empties this folder."""
    (folder / MARKER).unlink(missing_ok=True)


def start_command(folder: Path) -> str:
    """What continues with the folder's data."""
    return f"sparklog start --brokers 3 --root {shlex.quote(str(folder))}"
