"""Status and topics: for people as tables, for programs as JSON, with the exit status that is promised."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparklog.cli import connect, progress
from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.offsets import RemoteShare
from sparklog.model.ids import TopicPartition

Sparklog = Callable[..., Any]


HERE = os.getpid()
GONE = 2**22 + 1
"""Beyond the largest pid that Linux gives."""


def write_cluster_file(
    root: Path, bootstrap_servers: str, *, driver: int = HERE, broker_9: int = HERE
) -> None:
    brokers = [
        {"id": 1, "host": "127.0.0.1", "port": 1, "pid": driver, "log_dirs": []},
        {"id": 9, "host": "127.0.0.1", "port": 9, "pid": broker_9, "log_dirs": []},
    ]
    controllers = [{"pid": driver, "host": "127.0.0.1", "port": 9091, "active": True}]
    content = {"bootstrap_servers": bootstrap_servers, "brokers": brokers, "controllers": controllers}
    (root / "cluster.json").write_text(json.dumps(content))


def test_a_topic_is_created_listed_described_and_deleted(sparklog: Sparklog, fake: Any) -> None:
    ran = sparklog(
        "topics",
        "create",
        "t",
        "--partitions",
        "2",
        "--replication-factor",
        "1",
        "--config",
        "retention.ms=60000",
    )
    assert (ran.status, ran.err) == (DONE, "")
    assert ran.out == f"created topic 't' with id {fake.topics['t'].topic_id}\n"
    assert sparklog("topics", "list").out.splitlines()[1].split()[:2] == ["t", "2"]
    described = sparklog("topics", "describe", "t").out.splitlines()
    assert described[0].endswith("configs: retention.ms=60000")
    assert described[1].split()[:2] == ["PARTITION", "LEADER"]
    assert len(described) == 4
    assert sparklog("topics", "delete", "t").out == "deleted topic 't'\n"
    assert sparklog("topics", "list").out == "no topics\n"


def test_a_description_as_json_has_kafkas_field_names(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t", 1, **{"retention.ms": "1"})
    assert json.loads(sparklog("topics", "describe", "--json").out) == {
        "topics": [
            {
                "name": "t",
                "topic_id": str(fake.topics["t"].topic_id),
                "partitions": [
                    {
                        "partition": 0,
                        "leader": 1,
                        "leader_epoch": 0,
                        "replicas": [1],
                        "isr": [1],
                        "log_start_offset": 0,
                        "local_start_offset": 0,
                        "high_watermark": 0,
                        "log_end_offset": 0,
                        "remote_start_offset": -1,
                        "remote_end_offset": -1,
                        "remote_log_size_bytes": -1,
                        "remote_copy_lag_segments": -1,
                        "remote_copy_lag_bytes": -1,
                        "remote_trouble": "",
                    }
                ],
                "configs": {"retention.ms": "1"},
                "schema": None,
            }
        ]
    }


def test_a_description_shows_what_the_remote_store_has_and_what_is_wrong_with_it(
    sparklog: Sparklog, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = {TopicPartition("t", 0): (4, RemoteShare(0, 5, 4321, 2, 1234, "it was wiped"))}
    fake.create_topic("s")
    fake.create_topic("t", 1)
    monkeypatch.setattr(offsets, "local_starts", lambda *_: {TopicPartition("s", 0): (0, None), **shares})
    first, second = sparklog("topics", "describe").out.split("\n\n")
    assert "remote store" not in first
    table = second[second.index("in the remote store:") :].splitlines()
    assert table[1].split("  ")[0] == "PARTITION"
    assert table[2].split() == ["0", "0", "5", "4321", "2", "1234"]
    assert table[3] == "t-0: it was wiped"
    (partition,) = json.loads(sparklog("topics", "describe", "--json").out)["topics"][1]["partitions"]
    assert (partition["remote_end_offset"], partition["remote_copy_lag_segments"]) == (5, 2)
    assert (partition["local_start_offset"], partition["remote_trouble"]) == (4, "it was wiped")


def test_a_list_as_json_has_the_same_objects_as_a_description(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t", 3, **{"retention.ms": "1"})
    fake.create_topic("s")
    listed = json.loads(sparklog("topics", "list", "--json").out)
    assert listed == json.loads(sparklog("topics", "describe", "--json").out)
    assert [(topic["name"], len(topic["partitions"])) for topic in listed["topics"]] == [("s", 1), ("t", 3)]
    assert listed["topics"][1]["configs"] == {"retention.ms": "1"}


def test_a_description_without_a_name_shows_every_topic(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("s")
    fake.create_topic("t")
    shown = sparklog("topics", "describe").out
    assert shown.startswith("topic s, id ")
    assert "\n\ntopic t, id " in shown


def test_settings_may_stand_behind_one_flag_or_several(sparklog: Sparklog, fake: Any) -> None:
    settings = (
        "--config",
        "retention.ms=1",
        "segment.ms=2",
        "-c",
        "min.insync.replicas=1",
        "segment.bytes=99",
    )
    assert sparklog("topics", "create", *settings, "before").status == DONE
    assert sparklog("topics", "create", "behind", *settings).status == DONE
    assert fake.topics["before"].configs == fake.topics["behind"].configs
    assert len(fake.topics["before"].configs) == 4


def test_a_topic_that_is_not_there_is_named_with_the_nearest_one(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("quakes")
    for words in (("topics", "delete", "Quake"), ("topics", "describe", "Quake")):
        ran = sparklog(*words)
        assert (ran.status, ran.err) == (
            FAILED,
            "sparklog: there is no topic 'Quake'; did you mean quakes?\n",
        )


def test_a_topic_like_no_other_is_answered_with_how_to_see_them(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("quakes")
    remedy = f"`sparklog topics list --bootstrap-server {fake.bootstrap_servers}` shows those there are"
    for words in (("topics", "delete", "zzz"), ("topics", "describe", "zzz")):
        assert sparklog(*words).err == f"sparklog: there is no topic 'zzz'; {remedy}\n"


def test_what_a_leader_cannot_tell_is_a_dash_for_people(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    fake.log("t").leader = -1
    row = sparklog("topics", "describe", "t").out.splitlines()[-1].split()
    assert row[1] == "-"
    assert row[-3:] == ["-", "-", "-"]


def test_creating_what_is_there_fails_unless_that_is_fine(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t")
    ran = sparklog("topics", "create", "t")
    assert ran.status == FAILED
    assert "TOPIC_ALREADY_EXISTS" in ran.err
    assert sparklog("topics", "create", "t", "--if-not-exists").status == DONE


def test_deleting_what_is_not_there_fails_unless_that_is_fine(sparklog: Sparklog) -> None:
    ran = sparklog("topics", "delete", "t")
    assert ran.status == FAILED
    assert "'t'" in ran.err
    assert sparklog("topics", "delete", "t", "--if-exists").status == DONE


def test_a_wrong_setting_is_refused_with_the_nearest_name(sparklog: Sparklog, fake: Any) -> None:
    ran = sparklog("topics", "create", "t", "--config", "retenton.ms=1")
    assert ran.status == WRONG_USAGE
    assert "did you mean retention.ms?" in ran.err
    assert fake.topics == {}


def test_a_setting_that_sparklog_does_not_act_on_is_accepted_with_one_warning(sparklog: Sparklog) -> None:
    ran = sparklog("topics", "create", "t", "--config", "preallocate=true")
    assert ran.status == DONE
    assert re.fullmatch(r"sparklog: warning: .*preallocate=true.*\n", ran.err)


def test_wrong_names_and_numbers_are_wrong_usage(sparklog: Sparklog) -> None:
    assert sparklog("topics", "create", "a b").status == WRONG_USAGE
    assert sparklog("topics", "create", "t", "--partitions", "0").status == WRONG_USAGE
    assert sparklog("topics", "create", "t", "--config", "novalue").status == WRONG_USAGE
    assert sparklog("topics").status == WRONG_USAGE


def test_the_cluster_must_be_named_exactly_once(sparklog: Sparklog, tmp_path: Path) -> None:
    ran = sparklog("topics", "list", connect=False)
    assert ran.status == WRONG_USAGE
    assert "--bootstrap-server" in ran.err
    assert sparklog("topics", "list", "--root", str(tmp_path)).status == WRONG_USAGE
    assert sparklog("status", "--bootstrap-server", "nonsense", connect=False).status == WRONG_USAGE


@pytest.mark.parametrize("width", [80, 200])
def test_tables_are_as_wide_as_the_terminal_at_most(
    width: int, sparklog: Sparklog, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.create_topic("events-of-all-shops-and-warehouses", 2)
    monkeypatch.setenv("COLUMNS", str(width))
    for words in (("topics", "list"), ("topics", "describe"), ("status",)):
        lines = sparklog(*words).out.splitlines()
        table = [line for line in lines if not line.startswith(("topic ", "topics: ", "cluster "))]
        assert max(map(len, table)) <= width


def test_the_cluster_is_found_by_its_root(sparklog: Sparklog, fake: Any, tmp_path: Path) -> None:
    write_cluster_file(tmp_path, fake.bootstrap_servers)
    fake.create_topic("t")
    assert "t" in sparklog("topics", "list", "--root", str(tmp_path), connect=False).out
    assert "t" in sparklog("topics", "--root", str(tmp_path), "list", connect=False).out


def test_a_root_without_a_running_cluster_is_an_error_with_the_remedy(
    sparklog: Sparklog, tmp_path: Path
) -> None:
    ran = sparklog("status", "--root", str(tmp_path), connect=False)
    assert ran.status == FAILED
    assert f"sparklog start --brokers 3 --root {tmp_path}" in ran.err
    ran = sparklog("status", "--root", str(tmp_path / "my data"), connect=False)
    assert ran.err.endswith(f"sparklog start --brokers 3 --root '{tmp_path}/my data'\n")
    (tmp_path / "cluster.json").write_text("{")
    ran = sparklog("status", "--root", str(tmp_path), connect=False)
    assert ran.status == FAILED
    assert "cannot be read" in ran.err


@pytest.mark.parametrize("last_broker", [GONE, HERE], ids=["gone", "here"])
def test_a_cluster_that_was_killed_is_told_at_once_with_the_remedy(
    last_broker: int, sparklog: Sparklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClusterClient, "reach", lambda *_: pytest.fail("nobody is left to be asked"))
    write_cluster_file(tmp_path, "127.0.0.1:1", driver=GONE, broker_9=last_broker)
    for words in (("status",), ("topics", "list"), ("produce", "--topic", "t"), ("consume", "--topic", "t")):
        ran = sparklog(*words, "--root", str(tmp_path), connect=False)
        assert ran.status == FAILED
        assert ran.err == (
            f"sparklog: process {GONE} is gone, which ran the cluster of {tmp_path}/cluster.json; start it "
            f"again with: sparklog start --brokers 2 --broker-ids 1,9 --port 1 --root {tmp_path}\n"
        )


def test_status_names_a_process_that_is_gone_beside_what_still_runs(
    sparklog: Sparklog, fake: Any, tmp_path: Path
) -> None:
    write_cluster_file(tmp_path, fake.bootstrap_servers, broker_9=GONE)
    ran = sparklog("status", "--root", str(tmp_path), connect=False)
    assert ran.status == DONE
    assert f"process {GONE} is gone, which served broker 9" in ran.err
    assert "topics: 0" in ran.out


def test_a_cluster_of_another_machine_is_asked_whatever_its_pids(
    sparklog: Sparklog, fake: Any, tmp_path: Path
) -> None:
    write_cluster_file(tmp_path, fake.bootstrap_servers, driver=GONE, broker_9=GONE)
    path = tmp_path / "cluster.json"
    path.write_text(path.read_text().replace('"127.0.0.1", ', '"192.0.2.1", '))
    assert sparklog("topics", "list", "--root", str(tmp_path), connect=False).status == DONE


def test_brokers_that_cannot_be_reached_are_waited_for_aloud_and_not_for_long(
    sparklog: Sparklog, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connect.REACH_TIMEOUT_MS <= 10_000
    monkeypatch.setattr(progress, "PATIENCE_S", 0.05)
    monkeypatch.setattr(connect, "REACH_TIMEOUT_MS", 500)
    ran = sparklog("topics", "list", "--bootstrap-server", "127.0.0.1:1", connect=False)
    assert ran.status == FAILED
    waiting, failed = ran.err.splitlines()
    assert waiting == "sparklog: waiting for an answer from 127.0.0.1:1 ..."
    assert failed.startswith("sparklog: no broker of 127.0.0.1:1 answered within 500 ms (cannot connect")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("list", "--bootstrap-server", "nowhere"), "--bootstrap-server: 'nowhere' is not host:port"),
        (("list", "--bootstrap-server", "a:70000"), "'70000' is not a port between 1 and 65535"),
        (("list", "--root", ""), "--root: is empty"),
        (("create", "t", "--partitions", "0"), "--partitions: '0' is not a whole number from 1 on"),
        (("create", "t", "--partitions", "9999999999"), "9999999999 is too large"),
        (("create", "t", "--replication-factor", "40000"), "--replication-factor: 40000 is too large"),
        (("create", "t", "-c", "x"), "sparklog topics create: -c: 'x' is not of the form name=value"),
        (("create", "t", "--config", "x"), "--config: 'x' is not of the form name=value"),
        (("create", "a b"), "NAME: topic name 'a b' has characters other than"),
        (("lst",), "'lst' is none of create, list, describe, alter, delete"),
        (("list", "--jsn"), "--jsn; did you mean --json?"),
    ],
)
def test_wrong_usage_is_one_line_with_the_option_as_typed_and_the_value(
    words: tuple[str, ...], complaint: str, sparklog: Sparklog
) -> None:
    ran = sparklog("topics", *words, connect=False)
    assert ran.status == WRONG_USAGE
    assert complaint in ran.err
    assert ran.err.count("\n") == 1
    assert "--help" in ran.err


def test_status_shows_brokers_and_health(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t", 3)
    ran = sparklog("status")
    assert ran.status == DONE
    assert ran.out.startswith("cluster fake-cluster at 127.0.0.1:")
    assert re.search(r"\n +1 +127\.0\.0\.1:\d+ +serving +2 ", ran.out)
    assert "topics: 1, partitions: 3, under-replicated: 1, without a leader: 0" in ran.out


def test_status_as_json_is_one_object(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t", 3)
    status = json.loads(sparklog("status", "--json").out)
    assert status["cluster_id"] == "fake-cluster"
    assert [broker["broker_id"] for broker in status["brokers"]] == [1, 2]
    assert [broker["leaders"] for broker in status["brokers"]] == [2, 1]
    assert status["under_replicated_partition_count"] == 1


def test_status_by_root_knows_processes_and_dead_brokers(
    sparklog: Sparklog, fake: Any, tmp_path: Path
) -> None:
    write_cluster_file(tmp_path, fake.bootstrap_servers)
    ran = sparklog("status", "--root", str(tmp_path), connect=False)
    assert f"controller at 127.0.0.1:9091, pid {HERE}" in ran.out
    status = json.loads(sparklog("status", "--root", str(tmp_path), "--json", connect=False).out)
    assert [(broker["broker_id"], broker["alive"], broker["pid"]) for broker in status["brokers"]] == [
        (1, True, HERE),
        (2, True, None),
        (9, False, HERE),
    ]
    assert status["controllers"][0]["pid"] == HERE
