"""What makes bytes of a batch sound: Castagnoli's checksum, and an error that says what is not."""

from typing import Final


class DamagedBatchError(ValueError):
    """Bytes that are no sound batch, or one that this decoder does not know."""


def _crc_table() -> tuple[int, ...]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return tuple(table)


_CRC_TABLE: Final = _crc_table()


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum, a byte at a time: about a second for ten megabytes."""
    crc, table = 0xFFFFFFFF, _CRC_TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
