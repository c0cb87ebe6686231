"""The error codes in a response, wherever its message has them."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from sparklog.model.errors import ErrorCode


class _Places(NamedTuple):
    """The fields of a class that are error codes, and those that are arrays of classes with error codes."""

    codes: tuple[str, ...]
    arrays: tuple[str, ...]


def errors_in(response: object) -> Iterator[ErrorCode]:
    """Every code but NONE, in the order of the message's fields; ``response`` is a message's dataclass."""
    places = _places(type(response))
    for name in places.codes:
        code = getattr(response, name)
        if code is not ErrorCode.none:
            yield code
    for name in places.arrays:
        for item in getattr(response, name) or ():
            yield from errors_in(item)


_known: Final[dict[type, _Places]] = {}


def _places(message: type) -> _Places:
    found = _known.get(message)
    if found is None:
        found = _known[message] = _find_places(message)
    return found


def _find_places(message: type) -> _Places:
    hints = get_type_hints(message)
    names = list(hints)
    codes = tuple(name for name in names if hints[name] is ErrorCode)
    arrays = tuple(name for name in names if any(_has_errors(item) for item in _items(hints[name])))
    return _Places(codes, arrays)


def _items(hint: Any) -> Iterator[type]:
    """The dataclasses in ``list[...]`` and ``list[...] | None``."""
    for argument in get_args(hint):
        if isinstance(argument, type) and is_dataclass(argument):
            yield argument
        else:
            yield from _items(argument)


def _has_errors(message: type) -> bool:
    places = _places(message)
    return bool(places.codes or places.arrays)
