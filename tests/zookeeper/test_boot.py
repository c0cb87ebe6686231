import platform
import socket
import uuid
from pathlib import Path

import pytest

from sparklog.zookeeper import boot
from sparklog.zookeeper.boot import read_boot_id, read_host_id


def test_the_boot_id_is_the_first_line_of_the_first_file_that_has_one(tmp_path: Path) -> None:
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.write_text("\n")
    full.write_text("boot-7\n")
    assert read_boot_id((tmp_path / "missing", empty, full)) == "boot-7"


def test_both_ids_stay_the_same_within_a_process() -> None:
    assert read_boot_id() == read_boot_id() != ""
    assert read_host_id() == read_host_id() != ""


@pytest.mark.skipif(platform.system() != "Linux", reason="other systems tell it elsewhere")
def test_a_machine_that_does_not_tell_its_boot_gets_an_id_of_this_process(tmp_path: Path) -> None:
    missing = (tmp_path / "missing",)
    assert read_boot_id(missing) == read_boot_id(missing)
    assert uuid.UUID(read_boot_id(missing))
    assert read_boot_id(missing) != read_boot_id()


@pytest.mark.skipif(platform.system() != "Linux", reason="other systems tell it elsewhere")
def test_a_machine_without_an_id_goes_by_its_host_name(tmp_path: Path) -> None:
    assert read_host_id((tmp_path / "missing",)) == socket.gethostname()


def test_darwin_is_asked_for_its_boot_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "_darwin_setting", {"kern.bootsessionuuid": "B", "kern.uuid": "H"}.__getitem__)
    assert (read_boot_id((tmp_path / "none",)), read_host_id((tmp_path / "none",))) == ("B", "H")
