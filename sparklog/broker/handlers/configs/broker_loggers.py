"""The levels of a broker's loggers (resource type 8, KIP-412), under Kafka's names.

Loggers are those of the process, so brokers that share a process share them. A level holds until the process
ends. Python has no TRACE: it is taken as DEBUG.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.kafka_numbers import ConfigSource, ConfigType
from sparklog.wire.messages.admin.describe_configs import DescribeConfigsResourceResult
from sparklog.wire.messages.admin.incremental_alter_configs import (
    ConfigOperation,
    IncrementallyAlterableConfig,
)

logger: Final = logging.getLogger(__name__)

ROOT: Final = "root"
"""Kafka's name of the logger that all others inherit from."""

LEVELS: Final[Mapping[str, int]] = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": logging.DEBUG,
    "WARN": logging.WARNING,
}


def describe_loggers() -> Iterator[DescribeConfigsResourceResult]:
    """Every logger of this process with the level that applies to it."""
    names = sorted(
        name for name, one in logging.root.manager.loggerDict.items() if isinstance(one, logging.Logger)
    )
    for name in [ROOT, *names]:
        yield DescribeConfigsResourceResult(
            name=name,
            value=_level_name(_logger(name).getEffectiveLevel()),
            config_source=ConfigSource.DYNAMIC_BROKER_LOGGER,
            config_type=ConfigType.STRING,
        )


def alter_loggers(changes: Sequence[IncrementallyAlterableConfig], *, validate_only: bool) -> None:
    """Set or remove levels. Raises KafkaError, and changes nothing, if one of ``changes`` is illegal."""
    for change in changes:
        _check(change)
    if validate_only:
        return
    for change in changes:
        if change.config_operation == ConfigOperation.delete:
            _logger(change.name).setLevel(logging.NOTSET)
            logger.warning("the level of logger %s is now inherited", change.name)
        elif change.value is not None:
            _logger(change.name).setLevel(LEVELS[change.value])
            logger.warning("the level of logger %s is now %s", change.name, change.value)


def _check(change: IncrementallyAlterableConfig) -> None:
    operation = change.config_operation
    if operation not in (ConfigOperation.set, ConfigOperation.delete):
        message = f"Operation {operation} is not allowed for the BROKER_LOGGER resource"
        raise KafkaError(ErrorCode.invalid_request, message)
    if not _exists(change.name):
        raise KafkaError(ErrorCode.invalid_config, f"Logger {change.name} does not exist!")
    if operation == ConfigOperation.set and change.value not in LEVELS:
        message = (
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log "
            f"level. Valid log levels are {', '.join(LEVELS)}"
        )
        raise KafkaError(ErrorCode.invalid_config, message)
    if operation == ConfigOperation.delete and change.name == ROOT:
        message = f"Removing the log level of the {ROOT} logger is not allowed"
        raise KafkaError(ErrorCode.invalid_request, message)


def _exists(name: str) -> bool:
    return name == ROOT or isinstance(logging.root.manager.loggerDict.get(name), logging.Logger)


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _level_name(level: int) -> str:
    """Kafka's name of the greatest level that is not above ``level``."""
    names = {number: name for name, number in LEVELS.items() if name != "TRACE"}
    below = [number for number in names if number <= level]
    return names[max(below)] if below else "TRACE"
