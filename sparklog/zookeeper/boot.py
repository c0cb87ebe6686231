"""Which machine this is, and since which boot: what tells a killed broker from a power cut.

After a process dies its writes are still in the page cache of the kernel that took them; after the machine
dies they may be gone. The boot id is that kernel's name: Linux draws it anew at every start, and containers
on one machine share it, as they share the page cache. Brokers are given both ids as plain strings, so that
tests can cut the power by changing one.

A machine that does not tell its boot gets an id of this process: every restart then proves nothing, and the
replica catches up as a follower first. That is slower, never wrong.
"""

import platform
import socket
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

BOOT_ID_FILES: Final = (Path("/proc/sys/kernel/random/boot_id"),)
HOST_ID_FILES: Final = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))

_PROCESS_BOOT_ID: Final = str(uuid.uuid4())


def read_boot_id(files: Sequence[Path] = BOOT_ID_FILES) -> str:
    """A name for the time since this machine's kernel was started."""
    return _first_line_of(files) or _darwin_setting("kern.bootsessionuuid") or _PROCESS_BOOT_ID


def read_host_id(files: Sequence[Path] = HOST_ID_FILES) -> str:
    """A name for this machine that stays over boots; its host name where it has no better one."""
    return _first_line_of(files) or _darwin_setting("kern.uuid") or socket.gethostname()


def _first_line_of(files: Sequence[Path]) -> str:
    for file in files:
        if file.is_file():
            text = file.read_text(encoding="ascii").strip()
            if text:
                return text
    return ""


def _darwin_setting(name: str) -> str:
    if platform.system() != "Darwin":
        return ""
    result = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else ""
