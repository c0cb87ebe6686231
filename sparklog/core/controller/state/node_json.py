"""Nodes of ZooKeeper that hold a JSON object."""

import json
from collections.abc import Mapping
from typing import Any

from sparklog.model.errors import SparklogError


def encode_node(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def decode_node(path: str, data: bytes) -> dict[str, Any]:
    """Raises SparklogError, which names ``path``."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise SparklogError(f"ZooKeeper node {path} is not JSON ({error}): {data[:200]!r}") from None
    if not isinstance(document, dict):
        raise SparklogError(f"ZooKeeper node {path} is not a JSON object: {data[:200]!r}")
    return document


def bad_node(path: str, data: bytes, error: Exception) -> SparklogError:
    """The error of a node whose object is not as its kind must be."""
    return SparklogError(f"ZooKeeper node {path} cannot be understood ({error!r}): {data[:200]!r}")
