"""A file with secrets that others may open is found out, with the command that closes it."""

import os
from pathlib import Path

import pytest

from sparklog.credentials.secret_files import ROOT, SecretFile, closed_content, read_file
from sparklog.model.errors import ConfigError

SOMEBODY = 1_000


def exposure(mode: int, owner: int = SOMEBODY, path: str = "/etc/secrets") -> str | None:
    return SecretFile(path, b"planted", mode, owner).exposure()


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
@pytest.mark.parametrize("owner", [SOMEBODY, ROOT])
def test_a_file_that_its_owner_alone_opens_is_closed(mode: int, owner: int) -> None:
    assert exposure(mode, owner) is None


@pytest.mark.parametrize("mode", [0o640, 0o440, 0o604, 0o620, 0o610, 0o601, 0o644, 0o666])
def test_a_file_that_anybody_else_may_open_is_not(mode: int) -> None:
    assert exposure(mode) == (
        f"others may open /etc/secrets, as its mode is 0{mode:o}; close it: chmod 600 /etc/secrets"
    )


def test_root_may_let_a_group_read_its_files_and_nobody_else() -> None:
    assert exposure(0o640, ROOT) is None
    assert exposure(0o440, ROOT) is None
    for mode in (0o660, 0o644, 0o641, 0o650):
        assert "close it: chmod 640 /etc/secrets" in (exposure(mode, ROOT) or "")


def test_the_command_can_be_pasted() -> None:
    assert (exposure(0o644, path="/a b/$c") or "").endswith("chmod 600 '/a b/$c'")


def test_what_is_read_is_the_file_behind_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"planted")
    path.chmod(0o604)
    link.symlink_to(path)
    found = read_file(str(link))
    assert (found.content, found.mode, found.owner) == (b"planted", 0o604, os.geteuid())
    assert "planted" not in repr(found)
    with pytest.raises(ConfigError, match=rf"^others may open {link}, as its mode is 0604"):
        closed_content(found)
    path.chmod(0o600)
    assert closed_content(read_file(str(link))) == b"planted"
