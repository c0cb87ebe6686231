"""References become secrets where they are used; an error says what is missing, and shows no value."""

import os
from pathlib import Path

import pytest

from sparklog.credentials.references import resolve, reveal
from sparklog.model.errors import ConfigError
from sparklog.model.settings.secrets import Secret
from tests.closed_files import write_closed


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.properties"
    write_closed(path, "key.password = planted\nother=hush\n")
    return path


def test_a_reference_to_a_file_is_the_value_of_its_key(file: Path) -> None:
    assert resolve(f"${{file:{file}:key.password}}") == "planted"


def test_a_reference_to_a_folder_is_the_files_content_without_line_ends(tmp_path: Path) -> None:
    write_closed(tmp_path / "password", " planted \n")
    assert resolve(f"${{directory:{tmp_path}:password}}") == " planted "


def test_a_reference_to_the_environment_is_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_PASSWORD", "planted")
    assert resolve("${env:KEY_PASSWORD}") == "planted"


def test_several_references_stand_among_text(file: Path) -> None:
    text = f"user ${{file:{file}:other}} has ${{file:{file}:key.password}}!"
    assert resolve(text) == "user hush has planted!"
    assert resolve("plain") == "plain"
    assert resolve("") == ""


def test_a_changed_file_is_read_at_the_next_use(file: Path) -> None:
    reference = f"${{file:{file}:key.password}}"
    assert resolve(reference) == "planted"
    file.write_text("key.password=renewed")
    assert resolve(reference) == "renewed"


def test_what_a_secret_has_is_not_resolved_again(file: Path) -> None:
    file.write_text("one=${env:HOME}")
    assert resolve(f"${{file:{file}:one}}") == "${env:HOME}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("${file:DIR/none:key}", "DIR/none cannot be read here: No such file or directory"),
        ("${file:DIR:key}", "DIR cannot be read here: Is a directory"),
        ("${file:DIR/pipe:key}", "DIR/pipe is no file; name a file"),
        ("${file:DIR/file:KEY}", "DIR/file has no key KEY; add it, or correct its name"),
        ("${file:DIR/binary:KEY}", "byte 0 of the file is not UTF-8"),
        (
            "${file:DIR/open:key}",
            "others may open DIR/open, as its mode is 0644; close it: chmod 6",
        ),
        ("${directory:DIR:open}", "others may open DIR/open, as its mode is 0644; close it: chmod 6"),
        ("${directory:DIR:none}", "DIR/none cannot be read here: No such file or directory"),
        ("${directory:DIR:../x}", "'../x' is no file's name; name a file of that folder itself"),
        ("${directory:DIR:..}", "'..' is no file's name"),
        ("${env:NOT_THERE}", "the environment of this process has no variable NOT_THERE; set it"),
        ("${file:DIR/file}", "a reference to the source 'file' is not of the form ${file:PATH:KEY}"),
        ("${fiel:DIR/file:KEY}", "the source 'fiel', which there is not: write ${file:PATH:KEY}"),
    ],
)
def test_what_is_missing_is_named_and_no_value_shown(tmp_path: Path, text: str, problem: str) -> None:
    write_closed(tmp_path / "file", "key=planted\n")
    (tmp_path / "open").write_text("key=planted\n")
    (tmp_path / "open").chmod(0o644)
    (tmp_path / "binary").write_bytes(b"\xffplanted")
    (tmp_path / "binary").chmod(0o400)
    os.mkfifo(tmp_path / "pipe")
    secret = Secret(text.replace("DIR", str(tmp_path)), "ssl.key.password")
    with pytest.raises(ConfigError) as refused:
        reveal(secret)
    assert str(refused.value).startswith("ssl.key.password: ")
    assert problem.replace("DIR", str(tmp_path)) in str(refused.value)
    assert "planted" not in str(refused.value)


def test_a_password_may_look_like_a_reference_beside_other_text() -> None:
    assert resolve("a${b:c}d") == "a${b:c}d"
    assert resolve("${nothing") == "${nothing"


def test_blanks_around_a_secret_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDED", " planted\n")
    assert reveal(Secret(" ${env:PADDED} ")) == "planted"
