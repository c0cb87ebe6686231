"""Search for batches that were damaged on disk after they were written (bit rot, a bad sector).

A leader does not read the batches that it serves, because it sends them by ``sendfile``. A follower that
receives a wrong CRC fetches the same bytes again, and then the leader checks once whether they are damaged on
disk.
"""

from sparklog.model.errors import CorruptBatch
from sparklog.model.parts import read_parts
from sparklog.records.envelope import ENVELOPE_BYTES, crc_matches, parse_header
from sparklog.storage.log import Log
from sparklog.storage.recovery.log_recovery import Corruption


def find_damage(log: Log, offset: int, max_bytes: int) -> Corruption | None:
    """The first damaged batch in a read from ``offset``; None if all are intact or the damage is known
    already. The log must not be truncated meanwhile.
    """
    known = log.corruption
    if known is not None and known.covers(offset):
        return None
    try:
        read = log.read(offset, max_bytes, log.log_end_offset, at_least_one_batch=True)
        records = read_parts(read.parts) if read is not None else b""
        position = 0
        while len(records) - position >= ENVELOPE_BYTES:
            header = parse_header(records, position)
            if not crc_matches(records, position, header):
                reason = f"the batch at offset {header.base_offset} does not match its CRC"
                return _damage(log, header.base_offset, header.next_offset, reason)
            position += header.size_bytes
            offset = header.next_offset
    except (CorruptBatch, OSError) as error:
        return _damage(log, offset, offset + 1, str(error))
    return None


def refuse_damaged(log: Log, offset: int) -> None:
    """Raise CorruptBatch if the batch at ``offset`` is known to be damaged and is still part of the log."""
    known = log.corruption
    if known is not None and known.covers(offset) and (known.ends_log or offset >= log.log_start_offset):
        raise CorruptBatch(f"{log} is damaged there: {known.reason}")


def _damage(log: Log, offset: int, next_offset: int, reason: str) -> Corruption:
    base_offset = max((base for base in log.segment_bases if base <= offset), default=0)
    return Corruption(offset, base_offset, -1, reason, next_offset)
