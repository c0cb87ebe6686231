"""What of this machine's privileged tools works, and how they are called.

A probe answers in words why something cannot be done here, or None. It tries the real thing once, for a tool
that is installed need not be allowed.
"""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

PREFIX: Final = "slchaos"
"""Begins the name of everything that a run makes outside its folder. A process id follows: whose it is."""

_TOOL_TIMEOUT_S: Final = 30.0


class ToolFailed(Exception):  # noqa: N818 (says what is the case)
    """A command of this machine ended with an error."""


def call(*command: str) -> str:
    """Run a tool; its output. ``ToolFailed`` with what it said."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TOOL_TIMEOUT_S, env=_environment()
        )
    except OSError as error:
        raise ToolFailed(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ToolFailed(f"{' '.join(command)}: {said[-1] if said else f'status {done.returncode}'}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Tools of the system live where a user's PATH may not lead; nothing of a shim's gets to them."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return {"PATH": path, "LC_ALL": "C", "HOME": "/"}


def why_no_tools(tools: Sequence[str]) -> str | None:
    """None if these can be run by root, and we are root."""
    if sys.platform != "linux":
        return f"only Linux has it, this is {sys.platform}"
    if os.geteuid() != 0:
        return "needs root"
    missing = [tool for tool in tools if shutil.which(tool, path=_environment()["PATH"]) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (scripts/chaos-setup installs it)"
    return None


@functools.cache
def why_not(*command: str) -> str | None:
    """Why this machine refuses a harmless command, tried once; None if it does not."""
    try:
        call(*command)
    except ToolFailed as failure:
        return str(failure)
    return None


def own_name(role: str) -> str:
    """A name by which a later run sees whose it is: ``slchaos-4711-broker-1``."""
    return f"{PREFIX}-{os.getpid()}-{role}"


def is_left_behind(name: str) -> bool:
    """Whether a run made this and has ended without taking it away."""
    prefix, _, rest = name.partition("-")
    owner = rest.partition("-")[0]
    return prefix == PREFIX and owner.isdigit() and not os.path.exists(f"/proc/{owner}")
