"""Quix Streams: counts the records of each key, and writes each count to another topic, exactly once.

    python program.py SERVERS APPLICATION FROM TO FOLDER

Runs until it is ended. Counts are in a changelog topic, from which a process with another folder has them.
"""

import sys

from quixstreams import Application
from quixstreams.models import TopicConfig

servers, application, source, sink, folder = sys.argv[1:]
app = Application(
    broker_address=servers,
    consumer_group=application,
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    commit_interval=0.2,
    state_dir=folder,
    consumer_extra_config={"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000},
)
records = app.topic(
    source,
    key_deserializer="str",
    value_deserializer="str",
    config=TopicConfig(num_partitions=2, replication_factor=3),
)
counted = app.topic(sink, key_serializer="str", value_serializer="str")


def count(_, state):
    found = state.get("count", default=0) + 1
    state.set("count", found)
    return str(found)


app.dataframe(records).apply(count, stateful=True).to_topic(counted)

if __name__ == "__main__":
    app.run()
