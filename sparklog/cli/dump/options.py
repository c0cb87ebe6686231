"""The options of a dump, and the report that receives its rows and problems."""

import os
import re
from dataclasses import dataclass, field
from typing import Any, Final

from sparklog.cli.dump.output import Output
from sparklog.cli.dump.problems import Kind, Problems
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC

_BASE_OFFSET: Final = re.compile(r"(\d{1,19}|\d{20})\.")
_OFFSETS_DIRECTORY: Final = re.compile(re.escape(GROUP_OFFSETS_TOPIC) + r"-\d+(\.|$)")
"""A partition's directory, also one that is about to be deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """Kafka's options, under Kafka's names."""

    deep_iteration: bool
    print_data_log: bool
    offsets_decoder: bool
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
    def decodes_group_records(self) -> bool:
        """Whether keys and values are shown decoded: on request, or because the directory's name says that
        it is one of ``__consumer_offsets``.
        """
        directory = os.path.basename(os.path.dirname(self.full_path))
        named = _OFFSETS_DIRECTORY.match(directory) is not None
        return self.options.print_data_log and (self.options.offsets_decoder or named)

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
