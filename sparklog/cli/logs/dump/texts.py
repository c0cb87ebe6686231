"""The small text files: checkpoints, leader epochs, and owners of directories; shown line by line.

All lines are shown unchanged. Then the broker's own code parses the file, so that the dump and a broker agree
whether it is valid.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sparklog.cli.logs.dump.dump_options import Report
from sparklog.cli.logs.dump.rows import FieldsRow
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.errors import LogDirectoryError, SchemaError
from sparklog.model.schema.ddl_text import type_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.storage.disk import LocalDisk
from sparklog.storage.inspection.inspect_file import InspectedFile, Unreadable
from sparklog.storage.recovery.log_recovery import CORRUPTION
from sparklog.storage.small_files import checkpoints, meta_properties, partition_metadata

FILE_BYTES_MAX: Final = 64 * 1024 * 1024

_OFFSETS: Final = ("topic", "partition", "offset")
COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    checkpoints.RECOVERY_POINTS: _OFFSETS,
    checkpoints.HIGH_WATERMARKS: _OFFSETS,
    checkpoints.LOG_STARTS: _OFFSETS,
    checkpoints.EPOCHS: ("epoch", "startOffset"),
    CORRUPTION: ("offset",),
}
"""The names of each checkpoint's columns."""


def dump_checkpoint(report: Report, file: InspectedFile) -> None:
    text = _text(report, file)
    names = COLUMNS[report.name]
    lines = text.splitlines()
    for name, line in zip(("version", "count"), lines[:2], strict=False):
        report.output.fact(name, int(line) if _is_number(line) else line, f"{name}: {line}")
    for line in lines[2:]:
        row = _checkpoint_row(names, line)
        if row is None:
            report.output.remark(f"Found an invalid line: {line}")
            report.corrupt(f"line {line!r} is not {' '.join(names)}")
        else:
            report.output.row(row)
    try:
        rows = checkpoints.parse(text.encode("utf-8"))
        if report.name == checkpoints.EPOCHS:
            EpochHistory.of((int(epoch), int(start)) for epoch, start in rows)
    except ValueError as error:
        report.corrupt(f"a broker ignores it as a whole: {error}")


def _checkpoint_row(names: Sequence[str], line: str) -> FieldsRow | None:
    values = line.split(" ")
    if len(values) != len(names):
        return None
    fields: dict[str, str | int] = {}
    for name, value in zip(names, values, strict=True):
        if name != "topic" and not _is_number(value):
            return None
        fields[name] = value if name == "topic" else int(value)
    return FieldsRow(fields)


def dump_partition_metadata(report: Report, file: InspectedFile) -> None:
    _show_pairs(report, _text(report, file), ":")
    _ask_brokers_code(report, partition_metadata.read_topic_id)


def dump_schema(report: Report, file: InspectedFile) -> None:
    """The columns of the newest version; the file has all of them."""
    try:
        document = SchemaDocument.decode(_text(report, file).encode("utf-8"))
    except SchemaError as error:
        report.corrupt(str(error))
        return
    report.output.fact("version", document.version, f"version: {document.version}")
    for name, column in (("key", document.key), ("timestamp", document.timestamp)):
        report.output.fact(name, column, f"{name}: {'none' if column is None else column}")
    for field in document.at(document.version):
        nullable = "true" if field.nullable else "false"
        report.output.row(
            FieldsRow(
                {"id": field.id, "name": field.name, "type": type_text(field.type), "nullable": nullable}
            )
        )


def dump_meta_properties(report: Report, file: InspectedFile) -> None:
    _show_pairs(report, _text(report, file), "=")
    _ask_brokers_code(report, meta_properties.read)


def dump_clean_marker(report: Report, file: InspectedFile) -> None:
    _show_json(report, _text(report, file), ("version", "brokerEpoch"))


def dump_found_clean(report: Report, file: InspectedFile) -> None:
    _show_json(report, _text(report, file), ("version", "brokerEpoch", "bootId"))


def _show_json(report: Report, text: str, names: tuple[str, ...]) -> None:
    try:
        content = json.loads(text)
        report.output.row(FieldsRow({name: content[name] for name in names}))
    except (ValueError, KeyError, TypeError) as error:
        report.output.remark(f"Found an invalid line: {text}")
        report.corrupt(f"not a mark of a clean stop: {error!r}")


def dump_boot_id(report: Report, file: InspectedFile) -> None:
    report.output.row(FieldsRow({"boot-id": _text(report, file).strip()}))


def dump_lock(report: Report, file: InspectedFile) -> None:
    report.output.row(FieldsRow({"process": _text(report, file).strip()}))


def _show_pairs(report: Report, text: str, separator: str) -> None:
    for line in text.splitlines():
        name, found, value = line.partition(separator)
        if found and not line.startswith("#"):
            report.output.row(FieldsRow({name.strip(): value.strip()}))
        elif line.strip() and not line.startswith("#"):
            report.output.remark(f"Found an invalid line: {line}")
            report.corrupt(f"line {line!r} is not a name, {separator!r} and a value")


def _ask_brokers_code(report: Report, read: Callable[[LocalDisk, str], object]) -> None:
    try:
        read(LocalDisk(), report.full_path.rpartition("/")[0])
    except LogDirectoryError as error:
        report.corrupt(str(error))


def _text(report: Report, file: InspectedFile) -> str:
    if file.size() > FILE_BYTES_MAX:
        raise Unreadable(f"{file.size()} bytes are too many for {report.name}")
    return file.read_fully(file.size(), 0).decode("utf-8", "replace")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
