"""Names that are not there, with those that were perhaps meant."""

import difflib
from collections.abc import Sequence

from sparklog.model.schema.paths import quoted


def with_nearest(name: str, there: Sequence[str]) -> str:
    """The name as it is written in a text, with the nearest one that is there, if one is near."""
    lower = {one.lower(): one for one in there}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    return f"{quoted(name)} (near {quoted(lower[near[0]])})" if near else quoted(name)
