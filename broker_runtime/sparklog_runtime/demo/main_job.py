"""``sparklog demo``: the README's main job, from input to proof.

Real earthquakes and flights go through three replicated brokers inside Spark executors; a stream counts
them live; the broker that leads a partition is killed with SIGKILL while writes go on; and in the end
everything is read back and compared with what went in.
"""

import logging
import os
import shlex
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

from sparklog.client.admin import Admin, NewTopic, PartitionDescription
from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import PartitionMetadata
from sparklog.model.errors import SparklogError
from sparklog_runtime.demo.data_sets import (
    flights_count,
    flights_frame,
    quake_list,
    quakes_count,
    quakes_frame,
)
from sparklog_runtime.demo.live_count import LiveCount
from sparklog_runtime.demo.quake_feed import QuakeFeed
from sparklog_runtime.demo.screen import Screen
from sparklog_runtime.demo.ticker import Ticker, write_progress
from sparklog_runtime.life.foreground import run_in_foreground
from sparklog_runtime.life.local_cluster import LocalCluster
from sparklog_runtime.start.cluster_options import ClusterOptions
from sparklog_runtime.start.demo_folder import keep_from_demos, start_command, take_demo_folder
from sparklog_runtime.voice import Voice

logger: Final = logging.getLogger(__name__)

BROKERS: Final = 3
PARTITIONS: Final = 3
QUAKES: Final = "quakes"
FLIGHTS: Final = "flights"
DEFAULT_ROOT: Final = "sparklog-demo"
LIVE_BEFORE_KILL_S: Final = 6.0
LIVE_AFTER_RETURN_S: Final = 3.0
RETURN_TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.02


def run_demo(keep: bool, root: str | None) -> int:
    """Run the demo in the foreground; the exit status: 1 if any comparison failed or anything went wrong,
    128 and the signal's number, as shells have it, if one ended it before it was through."""
    screen = Screen()
    folder = Path(root or DEFAULT_ROOT).absolute()
    try:
        take_demo_folder(folder)
    except SparklogError as error:
        screen.problem(str(error))
        return 1
    options = ClusterOptions(
        root=folder,
        brokers=BROKERS,
        port=0,
        settings={"min.insync.replicas": "2", "auto.create.topics.enable": "false"},
        has_page=True,
    )
    notices = Notices()
    cluster = LocalCluster(options, progress=screen.line, notice=notices)
    demo = Demo(cluster, screen, notices, keep=keep)
    return run_in_foreground(
        cluster, demo.run, greet=demo.greet, hush=demo.hush, interrupted=demo.interrupted
    )


class Notices:
    """Notices about brokers. The demo reports its own kill itself; while the cluster is kept afterwards,
    notices are shown as ``sparklog start`` shows them.
    """

    def __init__(self) -> None:
        self.voice = Voice()
        self.are_shown = False

    def __call__(self, text: str) -> None:
        logger.warning("%s", text)
        if self.are_shown:
            self.voice(text)


class Demo:
    """One run on a cluster that has started. ``run`` is called on a thread of its own."""

    def __init__(self, cluster: LocalCluster, screen: Screen, notices: Notices, *, keep: bool) -> None:
        self._cluster = cluster
        self._screen = screen
        self._notices = notices
        self._keep = keep
        self._pause = threading.Event()
        self._status: int | None = None
        """How it went, once it is through."""

    def interrupted(self, number: int) -> int:
        """The exit status after a signal: a cluster that was kept ends properly, a demo is cut short."""
        return 128 + number if self._status is None else self._status

    def hush(self) -> None:
        self._screen.hush()
        self._notices.voice.hush()

    def greet(self) -> None:
        self._screen.text(
            "sparklog demo: earthquakes and flights through three replicated brokers inside Spark"
        )
        self._screen.step("An embedded ZooKeeper, a controller, and three brokers inside Spark executors")

    def run(self) -> int:
        """All the steps; 0 if every comparison held."""
        screen, cluster = self._screen, self._cluster
        bootstrap = cluster.bootstrap_servers
        for broker_id, pid in sorted(cluster.broker_pids().items()):
            screen.line(f"broker {broker_id} is process {pid}")
        screen.line(f"ready: bootstrap.servers={bootstrap}")
        spark = cluster.spark
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        with ClusterClient(bootstrap, client_id="sparklog-demo") as self._client:
            admin = Admin(self._client)
            self._write_batches(spark, admin, bootstrap)
            acknowledged = self._live_and_kill(spark, admin, bootstrap)
            is_right = self._compare(spark, bootstrap, acknowledged)
            self._show_partitions(admin)
        self._status = 0 if is_right else 1
        if self._keep:
            keep_from_demos(cluster.layout.root)
        self._say_what_next(bootstrap, is_right)
        if self._keep:
            self._notices.are_shown = True
            cluster.wait_ended()
        return self._status

    # 2

    def _write_batches(self, spark: Any, admin: Admin, bootstrap: str) -> None:
        screen = self._screen
        screen.step("Two DataFrames become two topics: 3 partitions, 3 replicas, acks from at least 2")
        configs = {"min.insync.replicas": "2"}
        admin.create_topics(
            [
                NewTopic(name=name, partitions=PARTITIONS, replication_factor=BROKERS, configs=configs)
                for name in (QUAKES, FLIGHTS)
            ]
        )
        inputs = ((QUAKES, quakes_frame, quakes_count), (FLIGHTS, flights_frame, flights_count))
        for name, make_frame, count in inputs:
            with Ticker(partial(str, f"Spark reads the {name} from their file"), screen.line):
                frame = make_frame(spark)
            screen.line(f'df.write.format("sparklog").option("topic", "{name}").mode("append").save()')
            began = time.monotonic()
            with write_progress(spark, admin, name, screen.line):
                (
                    frame.write.format("sparklog")
                    .option("bootstrap.servers", bootstrap)
                    .option("topic", name)
                    .mode("append")
                    .save()
                )
            screen.line(f"{name}: {count():,} rows committed in {time.monotonic() - began:.1f} s")

    # 3 and 4

    def _live_and_kill(self, spark: Any, admin: Admin, bootstrap: str) -> list[tuple[str, bytes]]:
        """The stream, the feed and the kill; returns the acknowledged records."""
        screen = self._screen
        screen.step("A stream counts quakes by magnitude, live, while more are being written")
        checkpoint = str(self._cluster.layout.root / "live-checkpoint")
        with Ticker(lambda: "the stream starts", screen.line):
            live = LiveCount(spark, bootstrap, QUAKES, checkpoint, self._show_counts)
        feed = QuakeFeed(bootstrap, QUAKES, PARTITIONS, quake_list())
        feed.start()
        try:
            with Ticker(lambda: "the stream has not counted any yet", screen.line):
                self._wait_for_counts(live)
            self._pause.wait(LIVE_BEFORE_KILL_S)
            feed.forget_gaps()
            self._kill_a_leader(admin, feed)
            self._pause.wait(LIVE_AFTER_RETURN_S)
        finally:
            feed.stop()
        for failure in feed.failures():
            raise SparklogError(f"the feed stopped: {failure}")
        live.catch_up()
        acknowledged = feed.acknowledged()
        total = quakes_count() + len(acknowledged)
        screen.line(f"the stream has counted {live.total:,} of {total:,} quakes")
        live.stop()
        return acknowledged

    def _show_counts(self, counts: dict[str, int]) -> None:
        classes = "   ".join(f"{name}: {count:,}" for name, count in counts.items() if count)
        self._screen.line(f"live  {sum(counts.values()):>6,} quakes   {classes}")

    def _wait_for_counts(self, live: LiveCount) -> None:
        while not live.total:
            if (failure := live.failure()) is not None:
                raise SparklogError(f"the streaming query failed: {failure}")
            self._pause.wait(0.1)

    def _kill_a_leader(self, admin: Admin, feed: QuakeFeed) -> None:
        screen = self._screen
        before = self._partitions(admin)
        victim = before[0].leader
        pid = self._cluster.broker_pids()[victim]
        led = {part.partition for part in before if part.leader == victim}
        screen.step(f"SIGKILL for broker {victim}, which leads partition 0, while writes go on")
        killed = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        screen.line(f"killed process {pid}")
        self._await_leaders(victim, killed)
        self._await_return(victim, pid, killed)
        self._pause.wait(1.0)
        screen.table(
            [
                "partition",
                f"broker {victim} was",
                "leader now",
                "longest time without an acknowledgement, ms",
            ],
            [
                [
                    writer.topic_partition.partition,
                    "leader" if writer.topic_partition.partition in led else "follower",
                    after.leader,
                    writer.longest_gap_ms,
                ]
                for writer, after in zip(feed.writers, self._partitions(admin), strict=True)
            ],
        )

    def _await_leaders(self, victim: int, killed: float) -> None:
        while any(part.leader in (victim, -1) for part in self._leaders()):
            self._check_time(killed, "new leaders")
        self._screen.line(f"after {time.monotonic() - killed:.2f} s other brokers lead all its partitions")

    def _await_return(self, victim: int, old_pid: int, killed: float) -> None:
        while self._cluster.broker_pids().get(victim, old_pid) == old_pid:
            self._check_time(killed, "the relaunch")
        pid = self._cluster.broker_pids()[victim]
        self._screen.line(
            f"after {time.monotonic() - killed:.2f} s broker {victim} is back on its data as process {pid}"
        )
        while any(len(part.isr) < BROKERS for part in self._leaders()):
            self._check_time(killed, "the ISR")
        self._screen.line(
            f"after {time.monotonic() - killed:.2f} s it has caught up: every ISR has {BROKERS} members"
        )

    def _check_time(self, since: float, what: str) -> None:
        if time.monotonic() - since > RETURN_TIMEOUT_S:
            raise SparklogError(f"waited {RETURN_TIMEOUT_S:.0f} s for {what} in vain")
        self._pause.wait(POLL_S)

    def _partitions(self, admin: Admin) -> tuple[PartitionDescription, ...]:
        return admin.describe_topics([QUAKES])[0].partitions

    def _leaders(self) -> list[PartitionMetadata]:
        """Leaders and ISRs only, without asking any leader for its offsets."""
        seen = self._client.metadata([QUAKES, FLIGHTS], max_age_ms=0)
        return [part for name in (QUAKES, FLIGHTS) for part in seen.topics[name].partitions.values()]

    # 5

    def _compare(self, spark: Any, bootstrap: str, acknowledged: list[tuple[str, bytes]]) -> bool:
        self._screen.step("Everything is read back and compared with what went in")
        again = spark.createDataFrame(
            [(key, value.decode()) for key, value in acknowledged], ["key", "value"]
        )
        expected = {QUAKES: quakes_frame(spark).union(again), FLIGHTS: flights_frame(spark)}
        rows = []
        for name, frame in expected.items():
            with Ticker(partial(str, f"Spark compares the {name}, row by row"), self._screen.line):
                rows.append(self._compare_topic(spark, bootstrap, name, frame))
        self._screen.table(["topic", "rows in", "rows read", "lost", "doubled or foreign", "equal"], rows)
        return all(row[-1] for row in rows)

    @staticmethod
    def _compare_topic(spark: Any, bootstrap: str, name: str, expected: Any) -> list[Any]:
        read = (
            spark.read.format("sparklog")
            .option("bootstrap.servers", bootstrap)
            .option("subscribe", name)
            .load()
            .selectExpr("cast(key as string) as key", "cast(value as string) as value")
        )
        lost = expected.exceptAll(read).count()
        foreign = read.exceptAll(expected).count()
        rows_in, rows_read = expected.count(), read.count()
        return [name, rows_in, rows_read, lost, foreign, lost == foreign == 0 and rows_in == rows_read]

    def _show_partitions(self, admin: Admin) -> None:
        self._screen.table(
            ["topic", "partition", "leader", "epoch", "ISR", "LEO", "HW"],
            [
                [
                    topic.name,
                    part.partition,
                    part.leader,
                    part.leader_epoch,
                    ",".join(map(str, part.isr)),
                    part.log_end_offset,
                    part.high_watermark,
                ]
                for topic in admin.describe_topics([QUAKES, FLIGHTS])
                for part in topic.partitions
            ],
        )

    def _say_what_next(self, bootstrap: str, is_right: bool) -> None:
        screen, root = self._screen, self._cluster.layout.root
        screen.text()
        screen.text(
            "Nothing lost, nothing doubled." if is_right else "THE COMPARISON FAILED: see the table above."
        )
        screen.text(f"The data is in {root}; Spark's own log is {root}/logs/spark.log")
        if self._keep:
            screen.text("The cluster goes on until Ctrl-C. Have a look, from another terminal:")
            screen.text(f"   kcat -b {bootstrap} -L")
            screen.text(f"   kcat -b {bootstrap} -C -t {QUAKES} -o beginning -c 3")
            screen.text(f"   sparklog status --root {shlex.quote(str(root))}")
            screen.text(f"   {self._cluster.page_url or 'sparklog page --bootstrap-server ' + bootstrap}")
            screen.text("No later demo empties this folder. After Ctrl-C, this goes on with its data:")
            screen.text(f"   {start_command(root)}")
        else:
            screen.text("The next demo empties this folder; this goes on with its data, and keeps it:")
            screen.text(f"   {start_command(root)}")
            screen.text("Or let the cluster run, and look around with kcat and its page:")
            screen.text("   make demo DEMO_OPTIONS=--keep (or sparklog demo --keep)")
