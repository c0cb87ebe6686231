"""The demo's folder: emptied by the next demo, unless somebody has come to rely on what is in it.

A demo marks the folder that it makes. Only a marked folder is ever emptied, and the mark goes as soon as the
data may be wanted: when a demo was told to keep it, or when ``sparklog start`` has run on it.
"""

import shlex
import shutil
from pathlib import Path
from typing import Final

from sparklog.model.errors import SparklogError
from sparklog_runtime.layout import Layout, RootLock

MARKER: Final = ".sparklog-demo"


def take_demo_folder(folder: Path) -> None:
    """Make the folder, or empty the one that an earlier demo left; SparklogError if it is not for us."""
    if not folder.exists():
        folder.mkdir(parents=True)
    elif any(folder.iterdir()) and not (folder / MARKER).exists():
        raise SparklogError(
            f"{folder} is not empty and is left alone: no demo made it, or one with --keep did, or a start "
            "has run there. Choose another folder with --root, or go on with its data: "
            f"{start_command(folder)}"
        )
    else:
        _empty(folder)
    (folder / MARKER).touch()


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
