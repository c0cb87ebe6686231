"""A record as a line of JSON: ``consume --json`` prints it, and ``produce --json`` takes it.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp_ms": 1700000000000, "key": "k", "value": "v",
     "headers": [{"key": "trace", "value": "1"}]}

Bytes that are UTF-8 are a string, others ``{"base64": "..."}``, and a null is null. So no byte is lost on the
way out and in again. Topic and offset are for readers: a writer ignores them.
"""

import base64
import binascii
import json
from typing import Any, Final

from sparklog.cli.command import did_you_mean
from sparklog.cli.logs.record_text.record import Record
from sparklog.cli.values import INT32_MAX, INT64_MAX
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition

BASE64: Final = "base64"
FIELDS: Final = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")
HEADER_FIELDS: Final = ("key", "value")


class BadRecord(SparklogError):  # noqa: N818 (a state, not a mistake)
    """A line that is no record; the text says what is wrong with it."""


def encode(topic_partition: TopicPartition, offset: int, record: Record) -> bytes:
    """The record as a line, without its newline."""
    document = {
        "topic": topic_partition.topic,
        "partition": topic_partition.partition,
        "offset": offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [{"key": name, "value": _text(value)} for name, value in record.headers],
    }
    return json.dumps(document, ensure_ascii=False).encode()


def decode(line: bytes) -> Record:
    """The record in a line. Raises BadRecord."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadRecord('is no JSON object, such as {"key": "k", "value": "v"}')
    _check_names(document, FIELDS)
    if "value" not in document:
        raise BadRecord('has no value; {"value": null} is a record whose value is null')
    headers = document.get("headers") or []
    if not isinstance(headers, list):
        raise BadRecord(f'headers={_shown(headers)} is no list, such as [{{"key": "k", "value": "v"}}]')
    return Record(
        value=_bytes(document["value"], "value"),
        key=_bytes(document.get("key"), "key"),
        headers=tuple(_header(header) for header in headers),
        partition=_number(document, "partition", 0, INT32_MAX),
        timestamp_ms=_number(document, "timestamp_ms", -INT64_MAX - 1, INT64_MAX),
    )


def _text(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(data).decode("ascii")}


def _bytes(text: Any, name: str) -> bytes | None:
    if text is None:
        return None
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise BadRecord(f"{name}={_shown(text)} has half of a character, which UTF-8 lacks") from None
    if isinstance(text, dict) and text.keys() == {BASE64} and isinstance(text[BASE64], str):
        try:
            return base64.b64decode(text[BASE64], validate=True)
        except (binascii.Error, ValueError) as error:
            raise BadRecord(f"{name}={_shown(text)} is no base64: {error}") from None
    raise BadRecord(f'{name}={_shown(text)} is neither a string, nor {{"base64": "..."}}, nor null')


def _header(header: Any) -> tuple[str, bytes | None]:
    if not isinstance(header, dict) or not isinstance(header.get("key"), str):
        raise BadRecord(f'the header {_shown(header)} is not of the form {{"key": "k", "value": "v"}}')
    _check_names(header, HEADER_FIELDS)
    _bytes(header["key"], "the header's key")
    return header["key"], _bytes(header.get("value"), f"the header {header['key']!r}")


def _number(document: dict[str, Any], name: str, least: int, most: int) -> int | None:
    number = document.get(name)
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        raise BadRecord(f"{name}={_shown(number)} is no whole number from {least} to {most}")
    return number


def _check_names(document: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in document:
        if name not in known:
            near = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise BadRecord(f"has {name!r}, which is no part of a record{near}")


def _shown(document: Any) -> str:
    text = json.dumps(document)
    return text if len(text) <= 60 else f"{text[:57]}..."
