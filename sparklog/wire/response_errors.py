"""The error codes in a response, wherever its message has them.

Every response of a broker is looked through, so what a class has is found out once and kept.
"""

from dataclasses import is_dataclass
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from sparklog.model.errors import ErrorCode


class _Places(NamedTuple):
    """The fields of a class that are error codes, and its arrays of classes with error codes."""

    codes: tuple[str, ...]
    arrays: tuple[tuple[str, "_Places"], ...]


_known: Final[dict[type, _Places]] = {}


def errors_in(response: object) -> list[ErrorCode]:
    """Every code but NONE, those of the message itself before those in its arrays."""
    found: list[ErrorCode] = []
    places = _known.get(type(response))
    if places is None:
        places = _known[type(response)] = _places(type(response))
    _collect(response, places, found)
    return found


def _collect(entity: object, places: _Places, found: list[ErrorCode]) -> None:
    for name in places.codes:
        code = getattr(entity, name)
        if code is not ErrorCode.none:
            found.append(code)
    for name, inner in places.arrays:
        for item in getattr(entity, name) or ():
            _collect(item, inner, found)


def _places(entity: type) -> _Places:
    hints = get_type_hints(entity)
    arrays = ((name, _places(item)) for name, hint in hints.items() for item in _items(hint))
    return _Places(
        codes=tuple(name for name, hint in hints.items() if hint is ErrorCode),
        arrays=tuple((name, inner) for name, inner in arrays if inner.codes or inner.arrays),
    )


def _items(hint: Any) -> list[type]:
    """The dataclasses in ``list[...]`` and ``list[...] | None``."""
    found: list[type] = []
    for argument in get_args(hint):
        is_entity = isinstance(argument, type) and is_dataclass(argument)
        found += [argument] if is_entity else _items(argument)
    return found
