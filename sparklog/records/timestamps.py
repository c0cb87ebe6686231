"""Log-append time, and limits for the timestamps of producers.

With ``message.timestamp.type=LogAppendTime`` all records of a batch get the time at which the leader appends
it: the leader sets the envelope's greatest timestamp, an attribute bit and a new CRC, and leaves the payload
unchanged. Otherwise a topic may refuse records that are too old, or too far ahead of the leader's clock.
"""

from sparklog.model.errors import ErrorCode
from sparklog.records.envelope import BatchHeader, Bytes
from sparklog.records.payload import payload_of
from sparklog.records.restamp import set_append_time
from sparklog.records.validate import Accepted, RefusedBatch


def stamp_append_time(
    buffer: bytearray | memoryview, accepted: Accepted, now_ms: int
) -> Accepted | RefusedBatch:
    """Set log-append time ``now_ms`` for all records, in place."""
    refused = _refuse_stamped(accepted)
    if refused is not None:
        return refused
    return Accepted(
        [(position, set_append_time(buffer, position, now_ms)) for position, _ in accepted.batches]
    )


def check_create_times(
    buffer: Bytes, accepted: Accepted, now_ms: int, *, before_max_ms: int, after_max_ms: int
) -> Accepted | RefusedBatch:
    """Refuse batches with records that are more than ``before_max_ms`` old or ``after_max_ms`` ahead.

    A record without a timestamp (-1) is neither.
    """
    refused = _refuse_stamped(accepted)
    if refused is not None:
        return refused
    for position, header in accepted.batches:
        ahead_ms = header.max_timestamp_ms - now_ms
        if ahead_ms > after_max_ms:
            return _too_far(header, f"{ahead_ms} ms ahead", "after", after_max_ms)
        # Finding the least timestamp decodes the records. Skip it where no age can exceed the limit.
        if before_max_ms < now_ms:
            least_ms = _least_timestamp(buffer, position, header)
            if least_ms is not None and now_ms - least_ms > before_max_ms:
                return _too_far(header, f"{now_ms - least_ms} ms old", "before", before_max_ms)
    return accepted


def _least_timestamp(buffer: Bytes, position: int, header: BatchHeader) -> int | None:
    batch = memoryview(buffer)[position : position + header.size_bytes]
    return payload_of(header).least_timestamp_ms(batch, header)


def _refuse_stamped(accepted: Accepted) -> RefusedBatch | None:
    if any(header.is_log_append_time for _, header in accepted.batches):
        reason = "a producer sent a batch with the bit for log-append time: only leaders may set it"
        return RefusedBatch(ErrorCode.invalid_timestamp, reason)
    return None


def _too_far(header: BatchHeader, how: str, side: str, limit_ms: int) -> RefusedBatch:
    return RefusedBatch(
        ErrorCode.invalid_timestamp,
        f"a record of {header.record_count} is {how}, more than message.timestamp.{side}.max.ms={limit_ms}: "
        "correct the producer's clock, or raise the topic's setting",
    )
