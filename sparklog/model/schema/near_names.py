"""Names that are not there, with those that were perhaps meant."""

import difflib
from collections.abc import Sequence
from typing import Final

from sparklog.model.schema.paths import quoted

_NAMES_SHOWN_MAX: Final = 20


def with_nearest(name: str, there: Sequence[str]) -> str:
    """The name as it is written in a text, with the nearest one that is there, if one is near."""
    lower = {one.lower(): one for one in there}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    return f"{quoted(name)} (near {quoted(lower[near[0]])})" if near else quoted(name)


def not_there(unknown: Sequence[str], there: Sequence[str], whose: str) -> str:
    """What is wrong with a condition or a list that names ``unknown`` columns, and what to do."""
    names = ", ".join(with_nearest(name, there) for name in unknown)
    word = "column" if len(unknown) == 1 else "columns"
    return (
        f"no {word} {names} in {whose}, which has {first_names(there, _NAMES_SHOWN_MAX)}: correct the name, "
        "or load again what was loaded before a change"
    )


def first_names(there: Sequence[str], at_most: int) -> str:
    """``a, b``, with ``…`` in the place of those that are more than ``at_most``."""
    return ", ".join([*map(quoted, there[:at_most]), *(["…"] if len(there) > at_most else [])])
