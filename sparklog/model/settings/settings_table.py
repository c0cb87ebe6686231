"""The tables of settings: of brokers, of topics, and what is special about some.

Every setting that sparklog implements is one ``Setting`` in ``BROKER_SETTINGS`` or ``TOPIC_SETTINGS``: its
name, type, default, bounds and one sentence of documentation. A topic's defaults are the broker's values.
"""

from collections.abc import Mapping
from typing import Final

from sparklog.model.listeners import DEFAULT_PROTOCOL_MAP
from sparklog.model.settings.access_settings import ACCESS_SETTINGS
from sparklog.model.settings.coordinator_settings import COORDINATOR_SETTINGS
from sparklog.model.settings.login_rows import LOGIN_SETTINGS
from sparklog.model.settings.remote_settings import REMOTE_SETTINGS, REMOTE_TOPIC_SETTINGS
from sparklog.model.settings.setting import INT_MAX, LONG_MAX, Setting
from sparklog.model.settings.synonyms import OTHER_NAMES
from sparklog.model.settings.tls_rows import METRICS_TLS_SETTINGS, TLS_SETTINGS
from sparklog.model.settings.web_rows import WEB_SETTINGS
from sparklog.model.settings.zookeeper_rows import ZOOKEEPER_SETTINGS


def _table(*settings: Setting) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings}


BROKER_SETTINGS: Final[Mapping[str, Setting]] = _table(
    Setting("listeners", "string", "",
            "Where the broker listens: `NAME://HOST:PORT`, separated by commas. No host is its own address; "
            "port 0: the start assigns one (docs/settings.md). Empty for PLAINTEXT alone."),
    Setting("advertised.listeners", "string", "",
            "Address of each listener for clients and other brokers, if it differs from where the broker "
            "listens."),
    Setting("listener.security.protocol.map", "string", DEFAULT_PROTOCOL_MAP,
            "The security protocol of each listener's name: PLAINTEXT, SSL (TLS), SASL_PLAINTEXT or SASL_SSL "
            "(with a login)."),
    Setting("inter.broker.listener.name", "string", "",
            "Listener for traffic among brokers and controller, the same on all brokers; empty for "
            "PLAINTEXT."),
    Setting("security.inter.broker.protocol", "string", "PLAINTEXT",
            "Chooses the inter-broker listener by its protocol, if inter.broker.listener.name is empty."),
    Setting("num.network.threads", "int", 1,
            "Processor threads of the reactor; each runs a selector over its connections. One is fastest "
            "under CPython's interpreter lock.", 1, 64),
    Setting("num.io.threads", "int", 2, "Handler threads that work on requests.", 1, 64),
    Setting("queued.max.requests", "int", 500,
            "Requests that may wait for a handler before processors stop reading.", 1, INT_MAX),
    Setting("queued.max.request.bytes", "int", -1,
            "Bytes of requests that all connections together may hold; then no further request is read, "
            "but for a larger one alone. -1 for no bound.", -1, LONG_MAX),
    Setting("socket.request.max.bytes", "int", 104_857_600,
            "Frames larger than this close the connection before memory is taken.", 1, INT_MAX),
    Setting("max.connections", "int", INT_MAX,
            "Connections that a broker, or with its prefix a listener, keeps open; further ones wait.",
            1, INT_MAX, dynamic=True),
    Setting("max.connection.creation.rate", "int", INT_MAX,
            "Connections a second that a broker, or with its prefix a listener, accepts; further ones wait.",
            0, INT_MAX, dynamic=True),
    Setting("max.connections.per.ip", "int", INT_MAX,
            "Connections that a broker keeps open from one address; further ones are closed at once.",
            0, INT_MAX, dynamic=True),
    Setting("max.connections.per.ip.overrides", "list", (),
            "Hosts with another limit than max.connections.per.ip, as `HOST:LIMIT`, separated by commas. "
            "Names are looked up at the start and when the setting changes.", pattern=r".+:\d{1,9}",
            dynamic=True),
    Setting("quota.window.num", "int", 11,
            "Samples over which the rates of clients with quotas are measured.", 1, 3_600),
    Setting("quota.window.size.seconds", "int", 1, "Length of such a sample.", 1, 3_600),
    Setting("controller.quota.window.num", "int", 11,
            "The same for changes of topics: they come in bursts of so many samples at most.", 1, 3_600),
    Setting("controller.quota.window.size.seconds", "int", 1, "Length of such a sample.", 1, 3_600),
    Setting("connections.max.idle.ms", "int", 600_000,
            "Connections without traffic for this long are closed, unless the broker owes them an answer; -1 "
            "for never.", -1, LONG_MAX),
    Setting("num.partitions", "int", 1, "Partitions of a topic created without a number.", 1, 100_000),
    Setting("default.replication.factor", "int", 1,
            "Replicas of a topic made without a number. `sparklog start`: one a broker, up to 3.", 1, 1_000),
    Setting("auto.create.topics.enable", "bool", True,
            "Create a topic when a client asks for metadata of one that does not exist and allows it."),
    Setting("min.insync.replicas", "int", 1,
            "acks=all is refused with fewer replicas in sync. `sparklog start`: 2 on a new DIR.", 1, 1_000,
            dynamic=True),
    Setting("broker.rack", "string", "",
            "Rack of this broker; replicas are spread over racks. By default the name of the hosting "
            "application."),
    Setting("replica.selector.class", "string", "",
            "RackAwareReplicaSelector sends consumers that name their client.rack to a replica in that rack; "
            "otherwise all read from leaders.",
            choices=("", "org.apache.kafka.common.replica.RackAwareReplicaSelector",
                     "org.apache.kafka.common.replica.LeaderSelector")),
    Setting("replica.lag.time.max.ms", "int", 30_000,
            "A follower that has not caught up for this long leaves the ISR.", 10, LONG_MAX),
    Setting("num.replica.fetchers", "int", 1,
            "Threads, each with a connection, that fetch from one leader.", 1, 64),
    Setting("replica.fetch.wait.max.ms", "int", 500,
            "Longest wait of a follower's fetch at the leader.", 1, 60_000),
    Setting("replica.fetch.min.bytes", "int", 1, "Bytes a follower's fetch waits for.", 1, INT_MAX),
    Setting("replica.fetch.max.bytes", "int", 1_048_576,
            "Bytes per partition that a follower asks for at once.", 1, INT_MAX),
    Setting("replica.fetch.response.max.bytes", "int", 10_485_760,
            "Bytes that a follower asks for in one fetch.", 1, INT_MAX),
    Setting("replica.fetch.backoff.ms", "int", 1_000,
            "Pause of a follower after an error of one partition.", 1, 60_000),
    Setting("replica.socket.timeout.ms", "int", 30_000,
            "Longest wait for a leader's answer beyond the fetch's own wait.", 100, INT_MAX),
    Setting("replica.high.watermark.checkpoint.interval.ms", "int", 5_000,
            "How often high watermarks are written to disk.", 10, LONG_MAX),
    Setting("fetch.max.bytes", "int", 57_671_680, "Most bytes of one fetch reply.", 1_024, INT_MAX),
    Setting("max.incremental.fetch.session.cache.slots", "int", 1_000,
            "Fetch sessions that are kept; further fetchers are served without a session.", 0, INT_MAX),
    Setting("message.max.bytes", "int", 1_048_588, "Largest record batch that is accepted.", 0, INT_MAX,
            dynamic=True),
    Setting("log.segment.bytes", "int", 1_073_741_824, "Size at which a segment is rolled.", 14, INT_MAX,
            dynamic=True),
    Setting("log.roll.ms", "int", 604_800_000,
            "Age at which a segment is rolled, by its records' timestamps.", 1, LONG_MAX, dynamic=True),
    Setting("log.roll.hours", "int", 168, "log.roll.ms in hours, used if that is not given.", 1, INT_MAX),
    Setting("log.roll.jitter.ms", "int", 0,
            "A segment is rolled up to this much before its age, so that segments do not roll all at "
            "once.", 0, LONG_MAX, dynamic=True),
    Setting("log.roll.jitter.hours", "int", 0, "log.roll.jitter.ms in hours, used if that is not given.",
            0, INT_MAX),
    Setting("log.index.interval.bytes", "int", 4_096,
            "Bytes of log between two entries of an index.", 0, INT_MAX, dynamic=True),
    Setting("log.index.size.max.bytes", "int", 10_485_760,
            "Size at which an index is full and its segment rolled.", 24, INT_MAX, dynamic=True),
    Setting("log.flush.offset.checkpoint.interval.ms", "int", 60_000,
            "How often recovery points are written to disk.", 10, LONG_MAX),
    Setting("log.flush.acks", "string", "written",
            "Where a replica has a record: in the kernel (written; a power cut of all loses it), or on disk "
            "(fsync). Sparklog's own; same everywhere.", choices=("written", "fsync")),
    Setting("log.flush.interval.messages", "int", LONG_MAX,
            "Number of unflushed records at which a log is flushed to disk.", 1, LONG_MAX, dynamic=True),
    Setting("log.flush.interval.ms", "int", LONG_MAX,
            "Age at which unflushed records of a log are flushed to disk; log.flush.scheduler.interval.ms if "
            "that alone is given.", 0, LONG_MAX, dynamic=True),
    Setting("log.flush.scheduler.interval.ms", "int", 3_000,
            "How often to look for logs whose log.flush.interval.ms is over.", 1, LONG_MAX),
    Setting("num.recovery.threads.per.data.dir", "int", 2,
            "Threads that check the logs of a directory after an unclean stop.", 1, 64),
    Setting("log.retention.ms", "int", 604_800_000,
            "Age at which segments are deleted; -1 keeps them.", -1, LONG_MAX, dynamic=True),
    Setting("log.retention.minutes", "int", 10_080,
            "log.retention.ms in minutes, used if that is not given.", -1, INT_MAX),
    Setting("log.retention.hours", "int", 168,
            "log.retention.ms in hours, used if neither that nor log.retention.minutes is given.",
            -1, INT_MAX),
    Setting("log.retention.check.interval.ms", "int", 300_000,
            "How often to look for segments that retention deletes.", 1, LONG_MAX),
    Setting("log.dirs.free.min.bytes", "int", -1,
            "Free bytes of a log directory's disk below which produces are refused; 0: never; -1: the lesser "
            "of 1 GB and 5 %. Sparklog's own.", -1, LONG_MAX, dynamic=True),
    Setting("log.retention.bytes", "int", -1, "Size above which old segments are deleted.", -1, LONG_MAX,
            dynamic=True),
    Setting("log.segment.delete.delay.ms", "int", 60_000,
            "How long the files of a deleted segment stay, renamed, before they are removed.",
            0, LONG_MAX, dynamic=True),
    Setting("log.message.timestamp.type", "string", "CreateTime",
            "Source of a record's timestamp: the producer, or the leader's clock at the append.",
            choices=("CreateTime", "LogAppendTime"), dynamic=True),
    Setting("log.message.timestamp.before.max.ms", "int", LONG_MAX,
            "Records are refused if their timestamp is further in the past than this.", 0, LONG_MAX,
            dynamic=True),
    Setting("log.message.timestamp.after.max.ms", "int", LONG_MAX,
            "Records are refused if their timestamp is further in the future than this.", 0, LONG_MAX,
            dynamic=True),
    Setting("compression.type", "string", "producer",
            "Codec of *records* batches: the producer's, or one that the leader gives them. Arrow batches "
            "stay as they are.",
            choices=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"), dynamic=True),
    Setting("compression.gzip.level", "int", -1,
            "Level at which a leader compresses with gzip; -1 for the library's default.", -1, 9,
            dynamic=True),
    Setting("compression.lz4.level", "int", 9, "Level at which a leader compresses with lz4.", 1, 17,
            dynamic=True),
    Setting("compression.zstd.level", "int", 3,
            "Level at which a leader compresses with zstd; above 19 as 19, which bounds its memory.",
            -131_072, 22, dynamic=True),
    Setting("log.cleanup.policy", "list", ("delete",),
            "How old records are removed: deleted by age and size, or compacted by key.",
            choices=("delete", "compact"), dynamic=True),
    Setting("log.cleaner.enable", "bool", True, "Compact the logs of topics with cleanup.policy=compact."),
    Setting("log.cleaner.threads", "int", 1, "Threads that compact logs.", 1, 64),
    Setting("log.cleaner.dedupe.buffer.size", "int", 134_217_728,
            "Memory of all cleaner threads for the latest offset of each key, 24 bytes a slot.",
            1_048_576, LONG_MAX, dynamic=True),
    Setting("log.cleaner.io.buffer.size", "int", 4_194_304,
            "Bytes of a log that a cleaner thread works on at a time.", 4_096, INT_MAX, dynamic=True),
    Setting("log.cleaner.io.buffer.load.factor", "float", 0.9,
            "How full the table of latest offsets may get before a cleaning ends early.", 0, 1, dynamic=True),
    Setting("log.cleaner.io.max.bytes.per.second", "float", 1.7976931348623157e308,
            "Bytes that all cleaner threads together read and write in a second.", 1, dynamic=True),
    Setting("log.cleaner.backoff.ms", "int", 15_000,
            "Pause of a cleaner thread when no log needs cleaning.", 1, LONG_MAX, dynamic=True),
    Setting("log.cleaner.min.cleanable.ratio", "float", 0.5,
            "A log is compacted once this share of its closed segments' bytes was never compacted.", 0, 1,
            dynamic=True),
    Setting("log.cleaner.min.compaction.lag.ms", "int", 0,
            "Records younger than this are not compacted.", 0, LONG_MAX, dynamic=True),
    Setting("log.cleaner.max.compaction.lag.ms", "int", LONG_MAX,
            "Records older than this are compacted whatever the cleanable ratio is.", 1, LONG_MAX,
            dynamic=True),
    Setting("log.cleaner.delete.retention.ms", "int", 86_400_000,
            "How long compaction keeps tombstones and transaction markers that it could remove.",
            0, LONG_MAX, dynamic=True),
    Setting("log.message.downconversion.enable", "bool", True,
            "Convert batches for consumers of Kafka before 0.11, which know only message formats 0 and 1; "
            "if not, these get UNSUPPORTED_VERSION.", dynamic=True),
    Setting("unclean.leader.election.enable", "bool", False,
            "Elect a replica outside the ISR when no other is left; may lose acknowledged records.",
            dynamic=True),
    Setting("auto.leader.rebalance.enable", "bool", True,
            "Let the controller move leadership back to preferred leaders."),
    Setting("leader.imbalance.check.interval.seconds", "int", 300,
            "How often the controller looks for leaders that are not the preferred ones.", 1, 1_000_000),
    Setting("leader.imbalance.per.broker.percentage", "int", 10,
            "Percentage of a broker's preferred partitions that others may lead before leadership moves "
            "back.",
            0, 100),
    Setting("producer.id.expiration.ms", "int", 86_400_000,
            "Producers silent for this long are forgotten.", 1, INT_MAX, dynamic=True),
    Setting("group.min.session.timeout.ms", "int", 6_000,
            "Shortest session time-out that a member of a group may ask for.", 0, INT_MAX),
    Setting("group.max.session.timeout.ms", "int", 1_800_000,
            "Longest session time-out that a member of a group may ask for.", 0, INT_MAX),
    Setting("group.max.size", "int", INT_MAX, "Members that a group may have.", 1, INT_MAX),
    Setting("group.initial.rebalance.delay.ms", "int", 3_000,
            "How long the first rebalance of an empty group waits for further members. A member that joins a "
            "new group meanwhile prolongs the wait.", 0, INT_MAX),
    Setting("offset.metadata.max.bytes", "int", 4_096,
            "Length of the text that a client may commit with an offset.", 0, INT_MAX),
    Setting("offsets.retention.minutes", "int", 10_080,
            "A committed offset expires this long after its group is empty, or after its commit if the group "
            "has no member that reads the topic.", 1, INT_MAX),
    Setting("offsets.retention.check.interval.ms", "int", 600_000,
            "How often to look for expired offsets.", 1, LONG_MAX),
    Setting("controlled.shutdown.enable", "bool", True, "Move leaders away before a broker stops."),
    Setting("zookeeper.session.timeout.ms", "int", 18_000,
            "ZooKeeper declares a broker dead after this long without a heartbeat.", 1_000, INT_MAX),
    Setting("zookeeper.connection.timeout.ms", "int", 18_000,
            "Longest wait for ZooKeeper at start; zookeeper.session.timeout.ms if that alone is given.",
            1_000, INT_MAX),
    Setting("controlled.shutdown.max.retries", "int", 3, "Tries of a controlled shutdown.", 0, 100),
    Setting("leader.replication.throttled.rate", "int", LONG_MAX,
            "Bytes a second that the broker sends to replicas that are not in sync, of the partitions that "
            "their topics name as throttled.", 0, LONG_MAX, dynamic=True),
    Setting("follower.replication.throttled.rate", "int", LONG_MAX,
            "Bytes a second that the broker fetches for its replicas that are not in sync, of the "
            "partitions that their topics name as throttled.", 0, LONG_MAX, dynamic=True),
    *COORDINATOR_SETTINGS,
    *ACCESS_SETTINGS,
    Setting("request.timeout.ms", "int", 30_000, "Longest wait for a controller's answer.", 100, INT_MAX),
    *REMOTE_SETTINGS,
    *TLS_SETTINGS,
    *LOGIN_SETTINGS,
    *ZOOKEEPER_SETTINGS,
    Setting("metrics.port", "int", -1,
            "Port at which a broker or controller serves metrics over HTTP (docs/metrics.md); 0 takes a free "
            "one, -1 serves none. Sparklog's own.", -1, 65_535),
    Setting("metrics.host", "string", "",
            "Address at which metrics are served; empty for the own address of a broker, or of the driver."),
    *METRICS_TLS_SETTINGS,
    *WEB_SETTINGS,
    Setting("audit.log.dir", "string", "",
            "Folder for the audit of denials and acts of administration (docs/security.md); empty: none. "
            "Sparklog's own."),
    Setting("audit.log.max.bytes", "int", 100 << 20,
            "Bytes after which a new file of the audit is begun. Sparklog's own.", 1_024, LONG_MAX),
    Setting("audit.log.max.files", "int", 10,
            "How many files of the audit are kept, the newest included. Sparklog's own.", 2, 1_000),
    Setting("hosts.file", "string", "",
            "File with rack and advertised address of each broker's host (docs/on-your-cluster.md). "
            "Sparklog's own."),
    Setting("controller.port", "int", 0,
            "Port of the controller on the driver's host, to which brokers connect; 0 takes a free one. "
            "Sparklog's own.", 0, 65_535),
    Setting("supervisor.port", "int", 0,
            "Port on the driver's host to which brokers keep connections that show their deaths; 0 takes a "
            "free one. Sparklog's own.", 0, 65_535),
)  # fmt: skip
"""The settings of a broker."""

DYNAMIC_BROKER_SETTINGS: Final = frozenset(
    name for name, setting in BROKER_SETTINGS.items() if setting.dynamic
)
"""Settings that may be changed while brokers run. Kafka 3.9 lets them change, or they are sparklog's own, and
they need no new thread or socket. The others are read at start.
"""

IDENTITY_SETTINGS: Final[Mapping[str, str]] = {
    "advertised.listeners": BROKER_SETTINGS["advertised.listeners"].doc,
    "broker.id": "Id of the broker, given by the start.",
    "listeners": BROKER_SETTINGS["listeners"].doc,
    "log.dirs": "Directories that hold the broker's logs, given by the start.",
    "node.id": "The same as broker.id.",
    "zookeeper.connect": "Addresses of ZooKeeper, with the path that holds the cluster, if any.",
}
"""Settings that make a broker the one that it is, with their documentation. It describes what it found at its
start, whatever was given.
"""

CLUSTER_WIDE_SETTINGS: Final = frozenset({"min.insync.replicas", "unclean.leader.election.enable"})
"""Dynamic settings that the controller uses, and that therefore cannot differ from broker to broker."""

TOPIC_SETTINGS: Final[Mapping[str, Setting]] = _table(
    *(
        Setting(
            name=topic_name,
            kind=broker.kind,
            default=broker.default,
            doc=broker.doc,
            minimum=broker.minimum,
            maximum=broker.maximum,
            choices=broker.choices,
            not_yet=broker.not_yet,
            broker_name=broker.name,
        )
        for topic_name, broker in (
            ("min.insync.replicas", BROKER_SETTINGS["min.insync.replicas"]),
            ("max.message.bytes", BROKER_SETTINGS["message.max.bytes"]),
            ("segment.bytes", BROKER_SETTINGS["log.segment.bytes"]),
            ("segment.ms", BROKER_SETTINGS["log.roll.ms"]),
            ("segment.jitter.ms", BROKER_SETTINGS["log.roll.jitter.ms"]),
            ("segment.index.bytes", BROKER_SETTINGS["log.index.size.max.bytes"]),
            ("index.interval.bytes", BROKER_SETTINGS["log.index.interval.bytes"]),
            ("retention.ms", BROKER_SETTINGS["log.retention.ms"]),
            ("retention.bytes", BROKER_SETTINGS["log.retention.bytes"]),
            ("local.retention.ms", BROKER_SETTINGS["log.local.retention.ms"]),
            ("local.retention.bytes", BROKER_SETTINGS["log.local.retention.bytes"]),
            ("file.delete.delay.ms", BROKER_SETTINGS["log.segment.delete.delay.ms"]),
            ("flush.messages", BROKER_SETTINGS["log.flush.interval.messages"]),
            ("flush.ms", BROKER_SETTINGS["log.flush.interval.ms"]),
            ("message.downconversion.enable", BROKER_SETTINGS["log.message.downconversion.enable"]),
            ("message.timestamp.type", BROKER_SETTINGS["log.message.timestamp.type"]),
            ("message.timestamp.before.max.ms", BROKER_SETTINGS["log.message.timestamp.before.max.ms"]),
            ("message.timestamp.after.max.ms", BROKER_SETTINGS["log.message.timestamp.after.max.ms"]),
            ("compression.type", BROKER_SETTINGS["compression.type"]),
            ("compression.gzip.level", BROKER_SETTINGS["compression.gzip.level"]),
            ("compression.lz4.level", BROKER_SETTINGS["compression.lz4.level"]),
            ("compression.zstd.level", BROKER_SETTINGS["compression.zstd.level"]),
            ("cleanup.policy", BROKER_SETTINGS["log.cleanup.policy"]),
            ("min.cleanable.dirty.ratio", BROKER_SETTINGS["log.cleaner.min.cleanable.ratio"]),
            ("min.compaction.lag.ms", BROKER_SETTINGS["log.cleaner.min.compaction.lag.ms"]),
            ("max.compaction.lag.ms", BROKER_SETTINGS["log.cleaner.max.compaction.lag.ms"]),
            ("delete.retention.ms", BROKER_SETTINGS["log.cleaner.delete.retention.ms"]),
            ("unclean.leader.election.enable", BROKER_SETTINGS["unclean.leader.election.enable"]),
        )
    ),
    *REMOTE_TOPIC_SETTINGS,
    *(
        Setting(
            f"{side}.replication.throttled.replicas",
            "list",
            (),
            f"Replicas whose {what} `{side}.replication.throttled.rate` limits while they are not in sync, "
            "as partition:broker pairs; * for all.",
            pattern=r"\d+:\d+|\*",
        )
        for side, what in (("leader", "sending"), ("follower", "fetching"))
    ),
)
"""The settings of a topic."""


TOPIC_NAMES: Final[Mapping[str, str]] = {
    **{setting.broker_name: name for name, setting in TOPIC_SETTINGS.items() if setting.broker_name},
    "log.message.format.version": "message.format.version",
    "log.message.timestamp.difference.max.ms": "message.timestamp.difference.max.ms",
    "log.preallocate": "preallocate",
    **{
        other.name: setting.name
        for setting in TOPIC_SETTINGS.values()
        for other in OTHER_NAMES.get(setting.broker_name, ())
        if other.name != "log.flush.scheduler.interval.ms"
    },
}
"""The topic's name of each setting for which brokers have another name."""

BROKER_NAMES: Final[Mapping[str, str]] = {
    **{topic_name: name for name, topic_name in TOPIC_NAMES.items()},
    **{name: setting.broker_name for name, setting in TOPIC_SETTINGS.items() if setting.broker_name},
}
