"""The loss of records that a query should have read: raised, or logged."""

import logging
from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import SparklogError

_logger: Final = logging.getLogger(__name__)


class DataLost(SparklogError):  # noqa: N818 (a state, not a mistake)
    """Records that the query should have read were deleted, or its offsets belong to a deleted topic."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Some data may have been missed: records aged out, or a topic was deleted, before "
            "the query read them. To go on with what is left, set option failOnDataLoss to false"
        )


@dataclass(frozen=True, slots=True)
class LossReport:
    """Raises or logs, as option ``failOnDataLoss`` says."""

    is_fatal: bool

    def report(self, what: str) -> None:
        if self.is_fatal:
            raise DataLost(what)
        _logger.warning("%s. Some data may have been missed; the query goes on with what is left", what)
