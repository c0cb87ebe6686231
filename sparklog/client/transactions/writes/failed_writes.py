"""The errors of atomic writes, each with what is visible of the write, and what to do."""

from sparklog.model.errors import SparklogError


class WriteFailed(SparklogError):  # noqa: N818 (a state, not a mistake)
    """The write cannot go on, or was not committed."""


class AlreadyCommitted(SparklogError):  # noqa: N818 (a state, not a mistake)
    """The version, or a later one, was committed: there is nothing to write."""
