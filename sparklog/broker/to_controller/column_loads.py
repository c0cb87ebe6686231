"""Gets the columns of typed topics for the replicas that lack them.

A role comes with the number of the newest version alone. This loop asks the controller for what the replicas
here lack, and each keeps its topic's document in its directory. A leader without it appends no rows: it
refuses them with an error upon which they are sent again. After a restart nothing is asked, because the
directories have everything.
"""

import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from sparklog.broker.partition.partition import Partition
from sparklog.model.errors import ErrorCode, SchemaError, SparklogError
from sparklog.model.loops import Await, CallController, Loop, Pause, Signal
from sparklog.model.schema.document import SchemaDocument
from sparklog.wire.messages.discovery.describe_schema import DescribeSchemaRequest, DescribeSchemaResponse

logger: Final = logging.getLogger(__name__)

ANSWER_MS: Final = 5_000
RETRY_MS: Final = 500
TOPICS_MAX: Final = 50
"""Topics of one request: each may have a document of 200,000 bytes."""

LANE: Final = "topic-columns"


class ColumnLoads:
    """The loop of one broker. ``look`` may be called from any thread."""

    def __init__(self, partitions: Callable[[], Iterable[Partition]]) -> None:
        self._partitions = partitions
        self._may_lack = Signal()

    def look(self) -> None:
        """Roles were taken: replicas may lack columns."""
        self._may_lack.give()

    def loop(self) -> Loop:
        """Load what is missing, for ever."""
        while True:
            missing = self._missing()
            if not missing:
                yield Await(self._may_lack)
                continue
            try:
                response = yield CallController(DescribeSchemaRequest(topics=missing), ANSWER_MS, LANE)
                self._take(response)
            except (OSError, SparklogError) as error:
                logger.info("the controller did not describe the columns of %s: %s", missing, error)
            if self._missing():
                yield Pause(RETRY_MS)

    def _missing(self) -> list[str]:
        names = {one.topic_partition.topic: None for one in self._partitions() if one.lacks_columns}
        return list(islice(names, TOPICS_MAX))

    def _take(self, response: DescribeSchemaResponse) -> None:
        for topic in response.topics:
            if topic.error_code is not ErrorCode.none or topic.document is None:
                logger.info("the columns of %s: %s %s", topic.name, topic.error_code, topic.error_message)
                continue
            try:
                document = SchemaDocument.decode(bytes(topic.document))
            except SchemaError as error:
                logger.error("the columns of topic %s cannot be read: %s", topic.name, error)
                continue
            for partition in self._partitions():
                if partition.topic_id == topic.topic_id and partition.lacks_columns:
                    partition.keep_columns(document)
