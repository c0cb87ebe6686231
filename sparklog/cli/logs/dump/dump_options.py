"""The options of a dump, and the report that receives its rows and problems."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sparklog.cli.logs.dump import group_records, transaction_records
from sparklog.cli.logs.dump.decoded import DecodedRecord
from sparklog.cli.logs.dump.output import Output
from sparklog.cli.logs.dump.problems import Kind, Problems
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from sparklog.wire.coordinator_records.record_codec import UnreadableRecord

_BASE_OFFSET: Final = re.compile(r"(\d{1,19}|\d{20})\.")
_PARTITION: Final = re.compile(r"(.+)-\d+(\.|$)")
"""A partition's directory, also one that is about to be deleted."""

Decode = Callable[[bytes | None, bytes | None], DecodedRecord | UnreadableRecord]
_DECODERS: Final[Mapping[str, Decode]] = {
    GROUP_OFFSETS_TOPIC: group_records.decoded,
    TRANSACTION_STATE_TOPIC: transaction_records.decoded,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """Kafka's options, under Kafka's names."""

    deep_iteration: bool
    print_data_log: bool
    offsets_decoder: bool
    transaction_log_decoder: bool
    skip_record_metadata: bool
    verify_index_only: bool
    index_sanity_check: bool
    max_message_size: int
    max_bytes: int | None


@dataclass(slots=True)
class Report:
    """The dump of one file: its options, its output, and its problems."""

    path: str
    options: DumpOptions
    output: Output
    problems: Problems
    full_path: str = field(init=False)

    def __post_init__(self) -> None:
        self.full_path = os.path.abspath(self.path)

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def base_offset(self) -> int | None:
        """The base offset in the file's name; None if the name has none."""
        found = _BASE_OFFSET.match(self.name)
        return int(found[1]) if found else None

    @property
    def decoder(self) -> Decode | None:
        """Decodes keys and values: the one that was asked for, or the one of the directory's topic.

        None if they are shown as they are, or not at all.
        """
        if not self.options.print_data_log:
            return None
        if self.options.offsets_decoder:
            return group_records.decoded
        if self.options.transaction_log_decoder:
            return transaction_records.decoded
        named = _PARTITION.match(os.path.basename(os.path.dirname(self.full_path)))
        return None if named is None else _DECODERS.get(named[1])

    def beside(self, suffix: str) -> str:
        """The file of the same segment with another suffix."""
        return os.path.join(os.path.dirname(self.full_path), self.name.split(".")[0] + suffix)

    def problem(self, kind: Kind, **facts: Any) -> None:
        self.problems.add(kind, self.full_path, **facts)

    def corrupt(self, reason: str) -> None:
        """Report a problem of the whole file, without a position."""
        self.problem(Kind.CORRUPT, reason=reason)

    def corrupt_at(self, position: int, size: int, reason: str) -> None:
        self.problem(Kind.CORRUPT_AT, position=position, size=size, reason=reason)
