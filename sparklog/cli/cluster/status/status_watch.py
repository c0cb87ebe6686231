"""``status --watch``: the status again and again, redrawn in place.

One thread asks, another draws. While nobody answers, the last status stays, with its age and the reason. A
pipe or a file gets each status as it comes; with ``--json`` an object a line.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sparklog.cli.cluster.status.cluster_status import ClusterStatus
from sparklog.cli.cluster.status.status_text import render_status
from sparklog.cli.progress import say
from sparklog.cli.signals import end_as_flag
from sparklog.model.errors import SparklogError

ASK_EVERY_S: Final = 2.0
DRAW_EVERY_S: Final = 1.0
OLD_S: Final = 5.0
"""From this age on it is shown."""

CLEAR_SCREEN: Final = "\x1b[2J"
BEGIN_OF_SCREEN: Final = "\x1b[H"
END_OF_LINE: Final = "\x1b[K"
REST_OF_SCREEN: Final = "\x1b[J"


@dataclass(slots=True)
class Watched:
    """The last status, when it came by the monotonic clock, and why there is no newer one."""

    status: ClusterStatus | None = None
    came_s: float = 0.0
    failure: str = ""
    number: int = 0
    """How many there were."""

    def came(self, status: ClusterStatus, now_s: float) -> None:
        self.status, self.came_s, self.failure = status, now_s, ""
        self.number += 1

    def text(self, now_s: float) -> str:
        if self.status is None:
            return f"nobody answers yet: {self.failure}" if self.failure else "asking ..."
        age_s = now_s - self.came_s + self.status.age_ms / 1_000
        if not self.failure and age_s < OLD_S:
            return render_status(self.status)
        reason = f"; nobody answers: {self.failure}" if self.failure else ""
        return f"as of {age_s:.0f} s ago{reason}\n{render_status(self.status)}"


def watch(look: Callable[[], ClusterStatus], *, as_json: bool) -> None:
    """Show what ``look`` returns until Ctrl-C; its SparklogErrors are shown, too."""
    watched, is_new = Watched(), threading.Event()
    with end_as_flag() as ended:
        asking = threading.Thread(target=_ask, args=(look, watched, is_new, ended), daemon=True)
        asking.start()
        if as_json or not sys.stdout.isatty():
            _print_each(watched, is_new, ended, as_json=as_json)
        else:
            _redraw(watched, is_new, ended)


def _ask(
    look: Callable[[], ClusterStatus], watched: Watched, is_new: threading.Event, ended: threading.Event
) -> None:
    while not ended.is_set():
        try:
            watched.came(look(), time.monotonic())
        except SparklogError as error:
            watched.failure = str(error)
        is_new.set()
        ended.wait(ASK_EVERY_S)


def _redraw(watched: Watched, is_new: threading.Event, ended: threading.Event) -> None:
    sys.stdout.write(CLEAR_SCREEN)
    while not ended.is_set():
        lines = "".join(f"{line}{END_OF_LINE}\n" for line in watched.text(time.monotonic()).splitlines())
        sys.stdout.write(f"{BEGIN_OF_SCREEN}{lines}{REST_OF_SCREEN}")
        sys.stdout.flush()
        is_new.wait(DRAW_EVERY_S)
        is_new.clear()


def _print_each(watched: Watched, is_new: threading.Event, ended: threading.Event, *, as_json: bool) -> None:
    printed, said = 0, ""
    while not ended.is_set():
        is_new.wait(DRAW_EVERY_S)
        is_new.clear()
        status, failure = watched.status, watched.failure
        if failure and failure != said:
            say(f"nobody answers: {failure}")
        said = failure
        if status is not None and watched.number > printed:
            printed = watched.number
            print(json.dumps(status.as_json()) if as_json else f"{render_status(status)}\n", flush=True)
