"""Status and topics: for people as tables, for programs as JSON, with the exit status that is promised."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE

Sparklog = Callable[..., Any]


def write_cluster_file(root: Path, fake: Any) -> None:
    brokers = [
        {"id": 1, "host": "127.0.0.1", "port": 1, "pid": 4711, "log_dirs": []},
        {"id": 9, "host": "127.0.0.1", "port": 9, "pid": 4719, "log_dirs": []},
    ]
    controllers = [{"pid": 4690, "host": "127.0.0.1", "port": 9091, "active": True}]
    content = {"bootstrap_servers": fake.bootstrap_servers, "brokers": brokers, "controllers": controllers}
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
                        "high_watermark": 0,
                        "log_end_offset": 0,
                    }
                ],
                "configs": {"retention.ms": "1"},
            }
        ]
    }


def test_a_list_as_json_is_one_object(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t", 3)
    assert json.loads(sparklog("topics", "list", "--json").out) == {
        "topics": [
            {
                "name": "t",
                "topic_id": str(fake.topics["t"].topic_id),
                "partition_count": 3,
                "replication_factor": 1,
            }
        ]
    }


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
    ran = sparklog("topics", "create", "t", "--config", "flush.ms=1")
    assert ran.status == DONE
    assert re.fullmatch(r"sparklog: warning: .*flush.ms=1.*\n", ran.err)


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


def test_the_cluster_is_found_by_its_root(sparklog: Sparklog, fake: Any, tmp_path: Path) -> None:
    write_cluster_file(tmp_path, fake)
    fake.create_topic("t")
    assert "t" in sparklog("topics", "list", "--root", str(tmp_path), connect=False).out
    assert "t" in sparklog("topics", "--root", str(tmp_path), "list", connect=False).out


def test_a_root_without_a_running_cluster_is_an_error_with_the_remedy(
    sparklog: Sparklog, tmp_path: Path
) -> None:
    ran = sparklog("status", "--root", str(tmp_path), connect=False)
    assert ran.status == FAILED
    assert f"sparklog start --brokers 3 --root {tmp_path}" in ran.err
    (tmp_path / "cluster.json").write_text("{")
    ran = sparklog("status", "--root", str(tmp_path), connect=False)
    assert ran.status == FAILED
    assert "cannot be read" in ran.err


def test_status_shows_brokers_and_health(sparklog: Sparklog, fake: Any) -> None:
    fake.create_topic("t", 3)
    ran = sparklog("status")
    assert ran.status == DONE
    assert ran.out.startswith("cluster fake-cluster at 127.0.0.1:")
    assert re.search(r"\n +1 +127\.0\.0\.1:\d+ +alive +2 ", ran.out)
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
    write_cluster_file(tmp_path, fake)
    ran = sparklog("status", "--root", str(tmp_path), connect=False)
    assert "controller at 127.0.0.1:9091, pid 4690" in ran.out
    status = json.loads(sparklog("status", "--root", str(tmp_path), "--json", connect=False).out)
    assert [(broker["broker_id"], broker["alive"], broker["pid"]) for broker in status["brokers"]] == [
        (1, True, 4711),
        (2, True, None),
        (9, False, 4719),
    ]
    assert status["controllers"][0]["pid"] == 4690
