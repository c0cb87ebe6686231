from pathlib import Path

import pytest

from sparklog.model.errors import SchemaError
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.storage.disk import LocalDisk
from sparklog.storage.small_files.schema_file import FILE, SchemaFile, read_schema

DOCUMENT = new_schema(parse_ddl("id bigint, mag double"))


def test_what_was_written_is_found_by_the_next_start(tmp_path: Path):
    file = SchemaFile(LocalDisk(), str(tmp_path))
    assert file.document is None
    file.write(DOCUMENT)
    assert file.document == DOCUMENT
    assert SchemaFile(LocalDisk(), str(tmp_path)).document == DOCUMENT
    assert read_schema(LocalDisk(), str(tmp_path)) == DOCUMENT


@pytest.mark.parametrize("damage", [b"", b"{", b'{"format": 9}', b"\xff\xff"])
def test_a_damaged_file_is_none_for_a_broker_and_an_error_for_who_reads_it(tmp_path: Path, damage: bytes):
    (tmp_path / FILE).write_bytes(damage)
    file = SchemaFile(LocalDisk(), str(tmp_path))
    assert file.document is None
    with pytest.raises(SchemaError):
        read_schema(LocalDisk(), str(tmp_path))
    file.write(DOCUMENT)
    assert SchemaFile(LocalDisk(), str(tmp_path)).document == DOCUMENT
