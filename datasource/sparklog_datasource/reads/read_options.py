"""The options of a read, under the names of Spark's Kafka connector.

The first of these that is set decides the start: ``startingTimestamp``, ``startingOffsetsByTimestamp``,
``startingOffsets``. The end of a batch read is decided likewise. Queries that continue from a checkpoint
ignore them.

Differences from the Kafka connector: unknown options are refused instead of ignored, and reads are
read-committed unless ``kafka.isolation.level`` is set.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from sparklog.client.isolation import IsolationLevel
from sparklog.model.errors import ConfigError
from sparklog_datasource.options.option_names import ENDING_OPTIONS, READ_OPTIONS, WRITE_OPTIONS
from sparklog_datasource.options.option_parsing import INT_MAX, ConnectionOptions, Options
from sparklog_datasource.reads.bounds import (
    EARLIEST,
    EARLIEST_OFFSET,
    LATEST,
    LATEST_OFFSET,
    AtOffset,
    AtTime,
    Bounds,
    Each,
    Everywhere,
    refuse_different_partitions,
)
from sparklog_datasource.reads.offset_json import parse_offsets, parse_timestamps
from sparklog_datasource.reads.subscription import Subscription, subscription_of
from sparklog_datasource.rows.column_choice import COLUMNS, named_columns
from sparklog_datasource.rows.form import RowForm, form_of
from sparklog_datasource.rows.row_condition import WHERE
from sparklog_datasource.rows.typed_form import TypedForm

BYTES_PER_TASK_MIN: Final = 64 * 1024
POLL_TIMEOUT_MS: Final = 120_000
MAX_TRIGGER_DELAY_MS: Final = 15 * 60_000
OFFSET_RETRIES: Final = 3
OFFSET_RETRY_INTERVAL_MS: Final = 1_000

_Side = Literal["starting", "ending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of one read, checked."""

    connection: ConnectionOptions
    subscription: Subscription
    start: Bounds
    end: Bounds
    fail_on_data_loss: bool
    form: RowForm | TypedForm
    """By the options alone that of untyped topics; ``topic_form`` finds that of typed ones."""

    includes_metadata: bool
    """Whether rows of typed topics have their place."""

    columns: tuple[str, ...] | None
    """The columns that the option of this name names; None for all."""

    where: str
    """The condition on rows of typed topics, as it was written; empty for none."""

    isolation_level: IsolationLevel
    partitions_min: int | None
    records_per_partition_max: int | None
    bytes_per_task: int | None
    """The bytes of the log for one task of a batch read; None if ranges are not split by bytes."""

    offsets_per_trigger_max: int | None
    offsets_per_trigger_min: int | None
    trigger_delay_max_ms: int
    poll_timeout_ms: int
    offset_retries_max: int
    offset_retry_interval_ms: int
    reports_offsets: bool
    report_as: str | None
    """The group under which a stream's offsets are reported; None for one with the query's id."""

    @property
    def splits_ranges(self) -> bool:
        """Whether offset ranges are split into pieces for several tasks."""
        return self.partitions_min is not None or self.records_per_partition_max is not None

    @classmethod
    def of_any(cls, given: Mapping[str, str]) -> "ReadOptions":
        """The options, checked by the rules of batches and streams alike, before Spark names the kind."""
        return cls._of(given, default_start=Everywhere(EARLIEST))

    @classmethod
    def of_batch(cls, given: Mapping[str, str]) -> "ReadOptions":
        options = cls._of(given, default_start=Everywhere(EARLIEST))
        _refuse_bound(options.start, LATEST_OFFSET, "starting offset", "latest")
        _refuse_bound(options.end, EARLIEST_OFFSET, "ending offset", "earliest")
        refuse_different_partitions(options.start, options.end)
        return options

    @classmethod
    def of_stream(cls, given: Mapping[str, str]) -> "ReadOptions":
        names = {name.lower() for name in given}
        for option in ENDING_OPTIONS:
            if option.lower() in names:
                kind = "offset" if option == "endingOffsets" else "timestamp"
                raise ConfigError(f"ending {kind} not valid in streaming queries; leave out option {option}")
        return cls._of(given, default_start=Everywhere(LATEST))

    @classmethod
    def _of(cls, given: Mapping[str, str], *, default_start: Bounds) -> "ReadOptions":
        options = Options(given, READ_OPTIONS, "read", passed_over=WRITE_OPTIONS)
        least = options.integer("minOffsetsPerTrigger", minimum=1)
        most = options.integer("maxOffsetsPerTrigger", minimum=1)
        if least is not None and most is not None and least > most:
            raise ConfigError(f"minOffsetsPerTrigger={least} is above maxOffsetsPerTrigger={most}; lower it")
        retries = options.integer("fetchOffset.numRetries", minimum=0, maximum=INT_MAX)
        pause_ms = options.integer("fetchOffset.retryIntervalMs", minimum=0, maximum=INT_MAX)
        poll_ms = options.integer("kafkaConsumer.pollTimeoutMs", minimum=1, maximum=INT_MAX)
        return cls(
            subscription=subscription_of(options),
            connection=options.connection(retry_option="default.api.timeout.ms"),
            start=_bounds(options, "starting", default_start),
            end=_bounds(options, "ending", Everywhere(LATEST)),
            fail_on_data_loss=options.boolean("failOnDataLoss", True),
            form=form_of(options),
            includes_metadata=options.boolean("includeMetadata", False),
            columns=_columns(options),
            where=_where(options),
            isolation_level=_isolation_level(options),
            partitions_min=options.integer("minPartitions", minimum=1, maximum=INT_MAX),
            records_per_partition_max=options.integer("maxRecordsPerPartition", minimum=1),
            bytes_per_task=_bytes_per_task(options),
            offsets_per_trigger_max=most,
            offsets_per_trigger_min=least,
            trigger_delay_max_ms=options.duration_ms("maxTriggerDelay", MAX_TRIGGER_DELAY_MS),
            poll_timeout_ms=POLL_TIMEOUT_MS if poll_ms is None else poll_ms,
            offset_retries_max=OFFSET_RETRIES if retries is None else retries,
            offset_retry_interval_ms=OFFSET_RETRY_INTERVAL_MS if pause_ms is None else pause_ms,
            reports_offsets=options.boolean("reportOffsets", True),
            report_as=_report_as(options),
        )


def _bounds(options: Options, side: _Side, default: Bounds) -> Bounds:
    or_latest = side == "ending" or _or_latest(options)
    everywhere, by_timestamp, by_offset = f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"
    if (text := options.text(everywhere)) is not None:
        return Everywhere(AtTime(_timestamp(everywhere, text), or_latest))
    if (text := options.text(by_timestamp)) is not None:
        times = parse_timestamps(by_timestamp, text)
        return Each(
            {topic_partition: AtTime(ms, or_latest) for topic_partition, ms in times.items()}, by_timestamp
        )
    if (text := options.text(by_offset)) is None:
        return default
    match text.strip().lower():
        case "earliest":
            return Everywhere(EARLIEST)
        case "latest":
            return Everywhere(LATEST)
    offsets = parse_offsets(by_offset, text)
    return Each({topic_partition: AtOffset(offset) for topic_partition, offset in offsets.items()}, by_offset)


def _timestamp(option: str, text: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise ConfigError(
            f"option {option}: expected a single long value, milliseconds since 1970, got {text!r}"
        ) from None


def _or_latest(options: Options) -> bool:
    option = "startingOffsetsByTimestampStrategy"
    text = options.text(option)
    strategy = "error" if text is None else text.strip().lower()
    if strategy not in ("error", "latest"):
        raise ConfigError(f"option {option}={text!r}: must be error or latest")
    return strategy == "latest"


def _isolation_level(options: Options) -> IsolationLevel:
    choices = ("read_uncommitted", "read_committed")
    return IsolationLevel(choices.index(options.client_choice("isolation.level", "read_committed", choices)))


def _columns(options: Options) -> tuple[str, ...] | None:
    text = options.text(COLUMNS)
    if text is None:
        return None
    for other, example in (("includeMetadata", "_offset"), ("includeHeaders", "headers")):
        if options.boolean(other, False):
            raise ConfigError(
                f"options {COLUMNS} and {other} both say which columns there are: leave {other} out, and "
                f"name {example} among the columns"
            )
    return named_columns(text)


def _where(options: Options) -> str:
    text = options.text(WHERE)
    if text is not None and not text.strip():
        raise ConfigError(f"option {WHERE} is empty: write a condition such as mag > 5, or leave it out")
    return text or ""


def _bytes_per_task(options: Options) -> int | None:
    bytes_max = options.byte_count("bytesPerTask", minimum=BYTES_PER_TASK_MIN)
    for other in ("minPartitions", "maxRecordsPerPartition"):
        if bytes_max is not None and options.text(other) is not None:
            raise ConfigError(f"options bytesPerTask and {other} both say how ranges are cut; leave one")
    return bytes_max


def _report_as(options: Options) -> str | None:
    text = options.text("reportAs")
    if text is None:
        return None
    name = text.strip()
    if not name:
        raise ConfigError("option reportAs is empty; name a group, or leave it out")
    if name == options.client("group.id"):
        raise ConfigError(
            f"options reportAs and kafka.group.id are both {name!r}: nothing is ever committed to the group "
            "of kafka.group.id; name another one"
        )
    return name


def _refuse_bound(bounds: Bounds, sentinel: int, what: str, word: str) -> None:
    refused = AtOffset(sentinel)
    if isinstance(bounds, Everywhere) and bounds.bound == refused:
        raise ConfigError(f"{what} can't be {word} for batch queries; leave it out or name offsets")
    if isinstance(bounds, Each):
        for topic_partition, bound in bounds.by_partition.items():
            if bound == refused:
                raise ConfigError(
                    f"option {bounds.option}: {what} for {topic_partition} can't be {word} for batch queries"
                )
