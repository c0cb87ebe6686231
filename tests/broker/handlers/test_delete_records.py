"""DeleteRecords requests that are refused before any log is touched."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.wire.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


@pytest.mark.parametrize("topic", sorted(INTERNAL_TOPICS))
def test_no_client_deletes_records_of_internal_topics(broker, topic):
    broker.lead()
    broker.produce(b"a")
    asked = [
        DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
        for name in (topic, "quakes")
    ]
    internal, other = broker.call(DeleteRecordsRequest(topics=asked, timeout_ms=1_000)).topics
    assert internal.partitions[0].error_code is ErrorCode.invalid_topic_exception
    assert (other.partitions[0].error_code, other.partitions[0].low_watermark) == (ErrorCode.none, 1)
