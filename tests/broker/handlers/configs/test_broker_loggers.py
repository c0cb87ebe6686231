"""Levels of loggers are described and changed under Kafka's names."""

import logging

import pytest

from sparklog.broker.handlers.configs.broker_loggers import alter_loggers, describe_loggers
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.wire.messages.admin.incremental_alter_configs import (
    ConfigOperation,
    IncrementallyAlterableConfig,
)

NAME = "sparklog.tests.a_logger_of_its_own"


@pytest.fixture(autouse=True)
def own():
    """A logger that nobody else uses, below one with a level."""
    logger = logging.getLogger(NAME)
    logging.getLogger("sparklog.tests").setLevel(logging.ERROR)
    yield logger
    logger.setLevel(logging.NOTSET)
    logging.getLogger("sparklog.tests").setLevel(logging.NOTSET)


def level():
    return {one.name: one.value for one in describe_loggers()}[NAME]


def change(name=NAME, operation=ConfigOperation.set, value=None):
    return [IncrementallyAlterableConfig(name=name, config_operation=operation, value=value)]


def test_a_level_that_is_set_holds_until_it_is_deleted(own):
    assert level() == "ERROR"
    alter_loggers(change(value="DEBUG"), validate_only=False)
    assert own.isEnabledFor(logging.DEBUG)
    assert level() == "DEBUG"
    alter_loggers(change(operation=ConfigOperation.delete), validate_only=False)
    assert level() == "ERROR"


def test_a_level_that_is_only_validated_stays_as_it_is(own):
    alter_loggers(change(value="WARN"), validate_only=True)
    assert own.level == logging.NOTSET


def test_loggers_are_described_with_their_source_and_root_among_them():
    described = {one.name: one for one in describe_loggers()}
    assert described["root"].config_source == 6
    assert not described[NAME].read_only


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        (change("no.such.logger", value="INFO"), ErrorCode.invalid_config, "Logger no.such.logger does not"),
        (change(value="LOUD"), ErrorCode.invalid_config, "Valid log levels are DEBUG, ERROR, FATAL, INFO"),
        (change(value=None), ErrorCode.invalid_config, "not a supported log level"),
        (change(operation=ConfigOperation.append, value="INFO"), ErrorCode.invalid_request, "not allowed"),
        (change(operation=9, value="INFO"), ErrorCode.invalid_request, "not allowed"),
        (change("root", ConfigOperation.delete), ErrorCode.invalid_request, "root logger is not allowed"),
    ],
)
def test_an_illegal_change_is_refused_and_those_beside_it_are_not_made(own, asked, error, words):
    with pytest.raises(KafkaError, match=words) as refused:
        alter_loggers([*change(value="INFO"), *asked], validate_only=False)
    assert refused.value.code is error
    assert own.level == logging.NOTSET
