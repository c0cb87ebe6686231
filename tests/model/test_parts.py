"""Parts of a reply."""

import pytest

from sparklog.model.parts import FileSlice, part_length, parts_length, read_parts
from sparklog.storage.disk import LocalDisk


@pytest.fixture
def file(tmp_path):
    (tmp_path / "f").write_bytes(b"0123456789")
    return LocalDisk().open(str(tmp_path / "f"))


def test_parts_are_read_in_order_from_memory_and_file(file) -> None:
    parts = [b"ab", FileSlice(file, 2, 3), memoryview(b"xyz")[1:]]
    assert read_parts(parts) == b"ab234yz"
    assert [part_length(part) for part in parts] == [2, 3, 2]
    assert parts_length(parts) == 7


def test_a_slice_beyond_the_files_end_is_an_error(file) -> None:
    with pytest.raises(OSError, match="ended 2 bytes before"):
        FileSlice(file, 8, 4).read()
