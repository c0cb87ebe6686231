"""Which code runs: commit, sources, Python, libraries. Where all are equal, a seed is the same run again."""

import hashlib
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Final

import histories
import simulation
import sparklog

LIBRARIES: Final = ("cramjam", "crc32c", "numpy", "pyarrow")
"""What sparklog depends on and a run loads."""


def current_commit() -> str:
    """The commit that runs here, with a mark if the tree differs from it; ``unknown`` outside a checkout."""
    here = Path(__file__).parent
    try:
        head = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--", "..", "../../histories", "../../../../sparklog")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("-changed" if changed else "")


def code_digest() -> str:
    """16 hexadecimal digits of a hash over all sources of sparklog, the checker and the simulation.

    They are equal where the same code runs.
    """
    found = hashlib.sha256()
    for package in (sparklog, histories, simulation):
        (root,) = package.__path__
        for source in sorted(path for path in Path(root).rglob("*") if path.suffix in (".py", ".json")):
            name = f"{package.__name__}/{source.relative_to(root)}"
            found.update(name.encode() + b"\0" + source.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def python_version() -> str:
    """As ``CPython 3.11.7``."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def library_versions() -> dict[str, str]:
    """Of all ``LIBRARIES``."""
    return {name: version(name) for name in LIBRARIES}


def _git(where: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=where, capture_output=True, text=True, check=True)
    return done.stdout.strip()
