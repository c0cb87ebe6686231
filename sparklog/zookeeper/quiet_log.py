"""Kazoo's log without its details, which have each request in full: digests, and credentials of users."""

import logging
from typing import Final

_NAME: Final = "kazoo.client"


def kazoo_logger() -> logging.Logger:
    """Kazoo's own logger, which passes nothing below INFO on, whatever levels are set."""
    logger = logging.getLogger(_NAME)
    logger.addFilter(_is_no_detail)  # adding it again changes nothing
    return logger


def _is_no_detail(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.INFO
