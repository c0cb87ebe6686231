"""Faust: counts the records of each key in a table, and sends each count to another topic.

    python program.py SERVERS APPLICATION FROM TO FOLDER

Runs until it is ended. The table's changes are in a topic, from which the next process has the counts.
"""

import sys

import faust

servers, application, source, sink, folder = sys.argv[1:]
app = faust.App(
    application,
    broker=[f"kafka://{server}" for server in servers.split(",")],
    datadir=folder,
    store="memory://",
    topic_replication_factor=3,
    topic_partitions=2,
    consumer_auto_offset_reset="earliest",
    broker_commit_interval=0.2,
    web_enabled=False,
)
records = app.topic(source, key_type=str, value_type=str, key_serializer="raw", value_serializer="raw")
counted = app.topic(sink, key_type=str, value_type=str, key_serializer="raw", value_serializer="raw")
counts = app.Table("counts", default=int, partitions=2)


@app.agent(records)
async def count(stream):
    async for key, _ in stream.items():  # noqa: PERF102 (a stream has no keys())
        counts[key] += 1
        await counted.send(key=key, value=str(counts[key]))


if __name__ == "__main__":
    sys.argv = ["program", "worker", "--loglevel=INFO", "--without-web"]
    app.main()
