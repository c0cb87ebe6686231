"""The locale of the Java programs that are started here.

Under the locale C a JVM takes file names for ASCII: it finds no file whose path has another letter, neither
its class path nor its data. Python reads and writes such names as UTF-8 under C, too (PEP 540).
"""

import os
from collections.abc import Mapping
from typing import Final

UTF8: Final = "C.UTF-8"
_ASCII_LOCALES: Final = ("", "C", "POSIX")


def java_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """``environment`` for a JVM: with UTF-8 where the locale would be C."""
    wanted = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "")
    return {**environment, **({"LC_ALL": UTF8} if wanted in _ASCII_LOCALES else {})}
