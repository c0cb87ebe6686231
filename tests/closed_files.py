"""Files of tests that hold secrets: closed to others, as references need them."""

from pathlib import Path

CLOSED = 0o600


def write_closed(path: Path, text: str) -> None:
    """Write ``text``; nobody else may open the file at any moment."""
    path.touch(CLOSED)
    path.chmod(CLOSED)
    path.write_text(text, encoding="utf-8")
