"""Random operations of storage's ``Disk`` port, and a disk that takes them."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sparklog.storage.disk import Disk, File

DIRECTORIES = ("t-0", "t-1", "t-0/deep", "t-1.gone")
NAMES = ("0.log", "1.log", "1.log.swap", "checkpoint")

Step = tuple[str, tuple[Any, ...]]


@dataclass
class Side:
    """One disk, and the files that are open on it."""

    disk: Disk
    root: str
    opened: list[File] = field(default_factory=list)

    def take(self, step: Step) -> object:
        """What came of it; of a refusal, which one."""
        kind, arguments = step
        try:
            return self._do(kind, *arguments)
        except OSError as refused:
            return type(refused).__name__

    def _do(self, kind: str, *arguments: Any) -> object:
        if kind == "open":
            path, create = arguments
            self.opened.append(self.disk.open(f"{self.root}/{path}", create=create))
            return self.opened[-1].size()
        if kind.startswith("file."):
            which, *rest = arguments
            if not self.opened:
                return None
            file = self.opened[which % len(self.opened)]
            return getattr(file, kind.removeprefix("file."))(*rest), file.size()
        method: Callable[..., object] = getattr(self.disk, kind)
        paths = [f"{self.root}/{one}" if isinstance(one, str) else one for one in arguments]
        if kind == "write_atomically":
            path, data, sync = paths
            return method(path, data, sync=sync)
        return method(*paths)

    def everything(self, below: str = "") -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        for name in self.disk.list(f"{self.root}{below}"):
            path = f"{below}/{name}"
            if self.disk.is_directory(f"{self.root}{path}"):
                found |= {path: None, **self.everything(path)}
            else:
                found[path] = self.disk.read(f"{self.root}{path}")
        return found


def random_step(dice: random.Random) -> Step:
    directory = dice.choice(DIRECTORIES)
    path, other = (f"{dice.choice((directory, 't-0'))}/{dice.choice(NAMES)}" for _ in range(2))
    which, data = dice.randrange(8), dice.randbytes(dice.choice((0, 1, 7, 700)))
    return dice.choice(
        [
            ("open", (path, True)),
            ("open", (path, dice.random() < 0.5)),
            *[("file.append", (which, data))] * 5,
            ("file.truncate", (which, dice.choice((0, 3, 8, 701)))),
            ("file.fsync", (which,)),
            ("file.pread", (which, dice.choice((0, 5, 900)), dice.choice((0, 3, 2_000)))),
            ("write_atomically", (path, data, dice.random() < 0.5)),
            ("write_atomically", (path, data, dice.random() < 0.5)),
            ("read", (path,)),
            ("size", (path,)),
            ("exists", (dice.choice((path, directory)),)),
            ("is_directory", (dice.choice((path, directory)),)),
            ("list", (directory,)),
            ("sync_file", (path,)),
            ("sync_directory", (directory,)),
            ("make_directory", (directory,)),
            ("make_directory", (directory,)),
            ("remove", (path,)),
            ("rename", (path, other)),
            ("rename", (path, other)),
            ("rename", (directory, dice.choice(DIRECTORIES))),
            ("remove_directory", (directory,)),
        ]
    )
