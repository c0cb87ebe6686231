"""Names that sparklog's own jobs draw for atomic writes and agreements. No rule can grant what is random, so
that whoever is first to use such a name owns it.
"""

from typing import Final

OWN_PREFIXES: Final = ("write-", "query-", "cut-")


def is_own_name(name: str) -> bool:
    """Whether a job of sparklog's may have drawn ``name``, and no user chose it."""
    return name.startswith(OWN_PREFIXES)
