"""``sparklog dump-log``: shows the content of a log directory's files, and whether it is valid.

The options and the lines are those of Kafka's DumpLogSegments; docs/dump-log.md lists additions and
differences. Files are opened read-only and without a lock, because a broker may be using them.
"""

import argparse
import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Final

from sparklog.cli.about.version import VERSION_LINE
from sparklog.cli.command import DONE, FAILED, Command, UsageError
from sparklog.cli.connect import add_json_argument, wants_json
from sparklog.cli.logs.dump import indexes, producer_states, remote_objects, segment_dump, texts
from sparklog.cli.logs.dump.dump_options import DumpOptions, Report
from sparklog.cli.logs.dump.output import JsonOutput, Output, TextOutput
from sparklog.cli.logs.dump.problems import Kind, Problems
from sparklog.cli.progress import patience, say
from sparklog.storage.inspection.inspect_file import InspectedFile, Unreadable
from sparklog.storage.log_directory import BOOT_ID, LOCK
from sparklog.storage.small_files import meta_properties, partition_metadata, schema_file
from sparklog.storage.small_files.clean_stop import CLEAN_MARKER, FOUND_CLEAN

MESSAGE_SIZE_MAX: Final = 5 * 1024 * 1024
BYTES_MAX: Final = 2**31 - 1
"""Kafka's default, by which it means no limit."""

NAMED_MAX: Final = 8
"""Files of a directory that a refusal names."""

Dump = Callable[[Report, InspectedFile], None]

BY_NAME: Final[Mapping[str, tuple[Dump, str]]] = {
    **dict.fromkeys(texts.COLUMNS, (texts.dump_checkpoint, "entries")),
    partition_metadata.FILE: (texts.dump_partition_metadata, "properties"),
    schema_file.FILE: (texts.dump_schema, "columns"),
    meta_properties.FILE: (texts.dump_meta_properties, "properties"),
    CLEAN_MARKER: (texts.dump_clean_marker, "properties"),
    FOUND_CLEAN: (texts.dump_found_clean, "properties"),
    BOOT_ID: (texts.dump_boot_id, "properties"),
    LOCK: (texts.dump_lock, "properties"),
}
"""The function that dumps a file, and the name of its rows."""

BY_SUFFIX: Final[Mapping[str, tuple[Dump, str]]] = {
    "log": (segment_dump.dump_log, "batches"),
    "index": (indexes.dump_offset_index, "entries"),
    "timeindex": (indexes.dump_time_index, "entries"),
    "txnindex": (indexes.dump_aborted_transactions, "entries"),
    "snapshot": (producer_states.dump_snapshot, "producers"),
    "arrow": (remote_objects.dump_arrow, "record_batches"),
    "rest": (remote_objects.dump_rest, "batches"),
}

REFUSED: Final = {
    "value_decoder_class": "it names a Java class; values are shown as UTF-8 text, as by StringDecoder",
    "key_decoder_class": "it names a Java class; keys are shown as UTF-8 text, as by StringDecoder",
    "cluster_metadata_decoder": "there is no KRaft metadata log here: the cluster's state is in ZooKeeper",
    "remote_log_metadata_decoder": "there is no tiered storage here",
}

DESCRIPTION: Final = """\
Shows what is in the files of a log directory, in the lines of Kafka's DumpLogSegments:
segments (.log), indexes (.index, .timeindex, .txnindex), producer states (.snapshot),
checkpoints, leader-epoch-checkpoint, partition.metadata, schema, meta.properties;
and the objects of a remote segment (.arrow, .rest).

Files are only read, and not locked: a broker may be running on them.
Exit status: 0, or 1 if something is damaged or two files contradict each other, or 2 for wrong usage."""

EXAMPLES: Final = (
    "sparklog dump-log --files DIR/orders-0/00000000000000000000.log",
    "sparklog dump-log --print-data-log --files DIR/orders-0/00000000000000000000.log",
    "sparklog dump-log --verify-index-only --files 00000000000000000000.index,00000000000000000000.timeindex",
    "sparklog dump-log --json --files DIR/replication-offset-checkpoint",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--files",
        required=True,
        action="append",
        metavar="FILE[,FILE...]",
        help="what to dump; its name says what it is",
    )
    parser.add_argument("--deep-iteration", action="store_true", help="every record, not only every batch")
    parser.add_argument(
        "--print-data-log",
        action="store_true",
        help="keys and values as well; implies --deep-iteration",
    )
    parser.add_argument(
        "--skip-record-metadata", action="store_true", help="of a record nothing but key and value"
    )
    parser.add_argument(
        "--verify-index-only", action="store_true", help="compare indexes with their .log; show no entries"
    )
    parser.add_argument(
        "--index-sanity-check",
        action="store_true",
        help="only what a broker checks at its start to see whether an index must be rebuilt",
    )
    parser.add_argument(
        "--max-message-size",
        type=_size,
        default=MESSAGE_SIZE_MAX,
        metavar="BYTES",
        help="the largest batch that an index may lead to; default: %(default)s",
    )
    parser.add_argument(
        "--max-bytes",
        type=_size,
        default=BYTES_MAX,
        metavar="BYTES",
        help="how much of each .log to look at; default: all",
    )
    add_json_argument(parser)
    parser.add_argument("--version", action="version", version=VERSION_LINE)
    _add_decoders(parser)


def _add_decoders(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--offsets-decoder",
        action="store_true",
        help="records of __consumer_offsets decoded, whatever the directory's name; implies --print-data-log",
    )
    parser.add_argument(
        "--transaction-log-decoder",
        action="store_true",
        help="the same for records of __transaction_state",
    )
    for name in REFUSED:
        parser.add_argument(
            _option(name), nargs="?", const="", default=None, metavar="CLASS", help=argparse.SUPPRESS
        )


def run(arguments: argparse.Namespace) -> int:
    options = _options(arguments)
    paths = [path for paths in arguments.files for path in paths.split(",") if path]
    for path in paths:
        _refuse_directory(path)
    output: Output
    if wants_json(arguments):
        output = JsonOutput(sys.stdout.write)
    else:
        output = TextOutput(sys.stdout.write, sys.stderr.write)
    problems = Problems()
    for path in paths:
        _dump(Report(path, options, output, problems))
    output.end(problems)
    return FAILED if problems.found else DONE


def _options(arguments: argparse.Namespace) -> DumpOptions:
    for name, reason in REFUSED.items():
        if getattr(arguments, name) is not None:
            raise UsageError(f"{_option(name)} cannot be used: {reason}")
    if arguments.offsets_decoder and arguments.transaction_log_decoder:
        raise UsageError("--offsets-decoder and --transaction-log-decoder are both given; give one of them")
    wants_decoder: bool = arguments.offsets_decoder or arguments.transaction_log_decoder
    prints = arguments.print_data_log or wants_decoder
    return DumpOptions(
        deep_iteration=arguments.deep_iteration or prints,
        print_data_log=prints,
        offsets_decoder=arguments.offsets_decoder,
        transaction_log_decoder=arguments.transaction_log_decoder,
        skip_record_metadata=arguments.skip_record_metadata,
        verify_index_only=arguments.verify_index_only,
        index_sanity_check=arguments.index_sanity_check,
        max_message_size=arguments.max_message_size,
        max_bytes=None if arguments.max_bytes == BYTES_MAX else arguments.max_bytes,
    )


def _refuse_directory(path: str) -> None:
    """UsageError with the files that can be dumped, if the path is a directory."""
    if not os.path.isdir(path):
        return
    try:
        names = sorted(name for name in os.listdir(path) if _how_to_dump(name)[0] is not None)
    except OSError as error:
        raise UsageError(f"--files {path} is a directory that cannot be read: {error.strerror}") from None
    if not names:
        raise UsageError(f"--files {path} is a directory, with nothing in it that can be dumped; name files")
    more = f" (and {len(names) - NAMED_MAX} more)" if len(names) > NAMED_MAX else ""
    files = ",".join(shlex.quote(os.path.join(path, name)) for name in names[:NAMED_MAX])
    raise UsageError(f"--files {path} is a directory; name the files in it that are meant: {files}{more}")


def _how_to_dump(name: str) -> tuple[Dump | None, str]:
    return BY_NAME.get(name) or BY_SUFFIX.get(name.rpartition(".")[2]) or (None, "entries")


def _dump(report: Report) -> None:
    kind = report.name.rpartition(".")[2]
    dump, rows = _how_to_dump(report.name)
    report.output.begin_file(report.path, report.name if report.name in BY_NAME else kind, rows)
    if dump is None:
        say(f"Ignoring unknown file {report.path}")
        return
    waiting = patience(f"reading {report.path}") if sys.stderr.isatty() else contextlib.nullcontext()
    try:
        with InspectedFile(report.path) as file, waiting:
            dump(report, file)
    except Unreadable as error:
        report.problem(Kind.UNREADABLE, reason=str(error))


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _size(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= BYTES_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes from 1 to {BYTES_MAX}")
    return int(text)


COMMAND: Final = Command(
    name="dump-log",
    summary="show what is in segments, indexes, snapshots and checkpoints, and whether it is sound",
    add_arguments=add_arguments,
    run=run,
    description=DESCRIPTION,
    examples=EXAMPLES,
)
