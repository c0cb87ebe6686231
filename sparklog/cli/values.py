"""Types of option values for argparse; an invalid value raises an error with the value and the remedy.

argparse puts the option's name before the text of an ``ArgumentTypeError``.
"""

import argparse
import os
from pathlib import Path
from typing import Final

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
PORT_MAX: Final = 65_535


def whole_number(text: str) -> int:
    """A whole number, negative ones too."""
    if not text.isascii() or not text.removeprefix("-").removeprefix("+").isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def natural(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def partition_count(text: str) -> int:
    return _at_most(positive(text), INT32_MAX)


def replication_factor(text: str) -> int:
    return _at_most(positive(text), INT16_MAX)


def partition_number(text: str) -> int:
    return _at_most(natural(text), INT32_MAX)


def offset(text: str) -> int:
    return _at_most(natural(text), INT64_MAX)


def broker_id(text: str) -> int:
    return _at_most(natural(text), INT32_MAX)


def producer_id(text: str) -> int:
    return _at_most(natural(text), INT64_MAX)


def producer_epoch(text: str) -> int:
    return _at_most(natural(text), INT16_MAX)


def coordinator_epoch(text: str) -> int:
    """An epoch; -1 stands for none, as DescribeProducers shows it."""
    return -1 if text == "-1" else _at_most(natural(text), INT32_MAX)


def _at_most(number: int, most: int) -> int:
    if number > most:
        raise argparse.ArgumentTypeError(f"{number} is too large; Kafka's protocol goes up to {most}")
    return number


def port(text: str) -> int:
    """A port to listen on; 0 means any free port."""
    if not text.isascii() or not text.isdigit() or int(text) > PORT_MAX:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port: give a number from 1 to {PORT_MAX}, or 0 for any free port"
        )
    return int(text)


def group_name(text: str) -> str:
    """The id of a group, as a type for argparse: anything but nothing."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; give the id of a group")
    return text


def transactional_id(text: str) -> str:
    """A transactional id, as a type for argparse: anything but nothing."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; give a transactional id")
    return text


def setting(text: str) -> tuple[str, str]:
    """``name=value``, the form of ``--config``; the value may be empty, the name may not."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name.strip(), value


def header(text: str) -> tuple[str, bytes]:
    """``NAME=VALUE``, the form of ``--header``, its value in the bytes that were typed."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"the name {name!r} is no text in UTF-8") from None
    return name, os.fsencode(value)


def directory(text: str) -> Path:
    """A directory that may not exist yet. Refuses an empty text, which an unset variable may cause."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; give a directory")
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a file; give a directory")
    return path
