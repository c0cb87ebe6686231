"""The ids of this machine and of its boot, which distinguish a killed broker from a power cut.

After a process dies its writes are still in the kernel's page cache; after a power cut they may be lost. The
boot id identifies one run of the kernel: Linux generates it at every boot, and containers on one machine
share it, as they share the page cache. Brokers get both ids as plain strings, so that tests can simulate a
power cut by changing one.

On a machine without a boot id, the id is one of this process: then no restart proves anything, and the
replica first catches up as a follower. This is slower, but never wrong.
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
    """The id of the current run of this machine's kernel."""
    return _first_line_of(files) or _darwin_setting("kern.bootsessionuuid") or _PROCESS_BOOT_ID


def read_host_id(files: Sequence[Path] = HOST_ID_FILES) -> str:
    """An id of this machine that survives reboots; the host name if there is no better one."""
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
