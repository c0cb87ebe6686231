"""Settings of a remote store: of copies to it, of reads from it, and of what stays on disks beside it."""

from typing import Final

from sparklog.model.settings.setting import INT_MAX, LONG_MAX, Setting

REMOTE_SETTINGS: Final = (
    Setting(
        "remote.log.storage.url",
        "string",
        "",
        "Store to which sealed segments of topics with remote.storage.enable are copied: file://, "
        "hdfs://, webhdfs:// or s3:// (docs/remote-stores.md); the same on all brokers. Sparklog's own.",
    ),
    Setting(
        "remote.log.manager.copy.max.bytes.per.second",
        "int",
        LONG_MAX,
        "Bytes that a broker writes to the remote store in a second.",
        1,
        LONG_MAX,
        dynamic=True,
    ),
    Setting(
        "remote.log.manager.task.interval.ms",
        "int",
        30_000,
        "Pause between two rounds of copying to the remote store.",
        1,
        LONG_MAX,
    ),
    Setting(
        "remote.fetch.max.wait.ms",
        "int",
        500,
        "Longest wait of a fetch for the remote store; then it is answered empty, and asked again.",
        1,
        INT_MAX,
    ),
    Setting(
        "remote.log.reader.threads", "int", 10, "Threads of a broker that read from the remote store.", 1, 64
    ),
    Setting(
        "remote.log.reader.max.pending.tasks",
        "int",
        100,
        "Reads from the remote store that may be under way or wait for a thread.",
        1,
        INT_MAX,
    ),
    Setting(
        "remote.log.reader.cache.bytes",
        "int",
        67_108_864,
        "Memory for what was read from the remote store ahead of its readers. Sparklog's own.",
        0,
        LONG_MAX,
    ),
    Setting(
        "log.local.retention.ms",
        "int",
        -2,
        "Age at which segments that the remote store has leave the disks; -1 for never, -2 as "
        "log.retention.ms.",
        -2,
        LONG_MAX,
    ),
    Setting(
        "log.local.retention.bytes",
        "int",
        -2,
        "Size of a log on a disk beyond which segments that the remote store has leave it; -1 for no "
        "limit, -2 as log.retention.bytes.",
        -2,
        LONG_MAX,
    ),
)

REMOTE_TOPIC_SETTINGS: Final = (
    Setting(
        "remote.storage.enable",
        "bool",
        False,
        "Copy sealed segments to the store of remote.log.storage.url. Not for compacted topics; taken back "
        "only with remote.log.delete.on.disable=true.",
    ),
    Setting(
        "remote.log.copy.disable",
        "bool",
        False,
        "Copy no further segments of a topic with remote.storage.enable; what is in the store stays there "
        "until its retention.",
    ),
    Setting(
        "remote.log.layout",
        "string",
        "arrow",
        "How segments are copied: arrow, with a file of their rows that others open; or raw, batches "
        "alone, without additional space. Sparklog's own.",
        choices=("arrow", "raw"),
    ),
    Setting(
        "remote.log.delete.on.disable",
        "bool",
        False,
        "Whether remote.storage.enable may be taken back: then the log begins where disks do, and what the "
        "store has is deleted.",
    ),
)
