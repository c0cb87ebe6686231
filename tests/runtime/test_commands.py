"""`sparklog start` as far as its command line goes: what is refused is refused before anything starts."""

import argparse
from pathlib import Path

import pytest

from sparklog.cli.command import WRONG_USAGE, build_parser
from sparklog.cli.main import main
from sparklog_runtime import commands
from sparklog_runtime.commands import start_command


def parsed(*words: str) -> argparse.Namespace:
    return build_parser(start_command).parse_args(["--brokers", "3", "--root", "cluster", *words])


def test_settings_may_stand_behind_one_flag_or_several() -> None:
    expected = [("a", "1"), ("b", "2"), ("d", "3=4")]
    assert parsed("-c", "a=1", "b=2", "-c", "d=3=4").settings == expected
    assert parsed("-c", "a=1", "--config", "b=2", "d=3=4", "--port", "1").settings == expected
    assert parsed("--config=a=1", "b=2", "-c", "d=3=4").settings == expected


def test_options_have_the_defaults_that_are_promised() -> None:
    arguments = parsed()
    assert (arguments.root, arguments.port, arguments.log_dirs_per_broker) == (Path("cluster"), 9092, 1)
    assert (arguments.zookeeper, arguments.master, arguments.broker_ids) == (None, None, None)


def test_a_settings_file_counts_where_no_option_goes_over_it(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("zookeeper.connect=zk:2181/x\nlog.dirs=/d\nnum.partitions=3\nnum.io.threads=2\n")
    options = commands._options(parsed("--settings", str(file), "-c", "num.partitions=5"))
    assert options.settings == {"num.partitions": "5", "num.io.threads": "2"}
    assert (options.zookeeper, options.log_dir_patterns) == ("zk:2181/x", ("/d/broker-{id}",))
    assert commands._options(parsed("--settings", str(file), "--zookeeper", "h:1")).zookeeper == "h:1"


def test_a_settings_file_without_zookeeper_and_directories_leaves_both_to_the_start(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\n")
    options = commands._options(parsed("--settings", str(file)))
    assert (options.settings, options.zookeeper, options.log_dir_patterns) == (
        {"num.partitions": "3"},
        None,
        (),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "No such file or directory"),
        ("nonsense\n", "line 1: 'nonsense'"),
        ("num.partition=3\n", "did you mean num.partitions?"),
        ("log.dirs=data\n", "log.dirs=data must list absolute directories"),
        ("zookeeper.connect=nowhere\n", "zookeeper.connect=nowhere"),
        ("log.dirs=/d\n", "leave one of them out"),
    ],
)
def test_a_settings_file_that_cannot_be_used_is_named_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, complaint: str
) -> None:
    file = tmp_path / "server.properties"
    if text is not None:
        file.write_text(text)
    words = ["--settings", str(file), "--log-dirs-per-broker", "2"]
    assert main(["start", "--brokers", "3", "--root", str(tmp_path / "root"), *words]) == WRONG_USAGE
    told = capsys.readouterr().err
    assert complaint in told
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("zookeeper", ["h:2181", "a:1,b:2/x/y", "[::1]:2181/x", "127.0.0.1:65535"])
def test_a_zookeeper_may_have_several_hosts_and_a_chroot(zookeeper: str) -> None:
    assert parsed("--zookeeper", zookeeper).zookeeper == zookeeper


def test_port_0_stands_for_free_ports_and_the_last_port_may_be_used() -> None:
    assert parsed("--port", "0").port == 0
    commands._check_together(parsed("--port", "65533"))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            "--port 70000",
            "--port: '70000' is not a port: give a number from 1 to 65535, or 0 for any free port",
        ),
        ("--port -1", "--port: '-1' is not a port"),
        ("--port 65534", "--port 65534 with --brokers 3 needs ports up to 65536"),
        ("--port 65534", "choose --port 65533 or lower"),
        ("--zookeeper nowhere", "--zookeeper: 'nowhere' is not HOST:PORT; give HOST:PORT[/chroot], as in"),
        ("--zookeeper a:1,b", "'b' of 'a:1,b' is not HOST:PORT"),
        ("--zookeeper h:0", "'h:0' has no port from 1 to 65535"),
        ("--zookeeper h:1/", "'/' of 'h:1/' is no chroot"),
        ("--brokers -1", "--brokers: '-1' is not a whole number from 0 on"),
        ("--brokers x", "--brokers: 'x' is not a whole number from 0 on"),
        ("--broker-ids 1,x,3", "--broker-ids: '1,x,3' is not a list of numbers from 0 on, such as 1,2,3"),
        ("--broker-ids=-1,2,3", "'-1,2,3' is not a list of numbers from 0 on"),
        ("--broker-ids 1,1,2", "'1,1,2' names a broker twice"),
        ("--broker-ids 1,2,9999999999", "9999999999 is beyond 2147483647, the largest broker id"),
        ("--broker-ids 1,2", "--broker-ids 1,2 names 2, but --brokers says 3"),
        ("--log-dirs-per-broker 0", "--log-dirs-per-broker: '0' is not a whole number from 1 on"),
        ("--master nonsense", "--master: 'nonsense' is no master URL of Spark; give local[N]"),
        ("--master local[3]", "set --master local[4] or more"),
        ("--root /dev/null", "--root: '/dev/null' is a file; give a directory"),
        ("-c oops", "-c: 'oops' is not of the form name=value"),
        ("-c a=1 oops", "-c: 'oops' is not of the form name=value"),
        ("-c num.partition=3", "did you mean num.partitions?"),
        ("--prt 1", "--prt 1; did you mean --port?"),
    ],
)
def test_what_cannot_work_is_wrong_usage_that_names_the_value_and_the_remedy(
    words: str,
    complaint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commands, "LocalCluster", lambda *_, **__: pytest.fail("something was started"))
    status = main(["start", "--brokers", "3", "--root", str(tmp_path), *words.split()])
    assert status == WRONG_USAGE
    out, err = capsys.readouterr()
    assert complaint in err
    assert out == ""
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
