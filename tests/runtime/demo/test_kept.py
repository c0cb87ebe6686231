"""A demo with --keep, when all is shown: its cluster is told of as by `sparklog start`. No Spark here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparklog_runtime.demo.main_job import Demo, Notices
from sparklog_runtime.demo.screen import Screen
from sparklog_runtime.start.cluster_folders import Layout


class Cluster:
    """Its broker dies twice: while the demo shows its kill, and when it is through."""

    bootstrap_servers = "127.0.0.1:1"
    page_url = "http://127.0.0.1:2/"
    spark = SimpleNamespace(conf=SimpleNamespace(set=lambda name, value: None))

    def __init__(self, root: Path, notices: Notices) -> None:
        self.layout = Layout.at(root)
        self._notices = notices

    def broker_pids(self) -> dict[int, int]:
        self._notices("broker 1 (process 7) was killed")
        return {}

    def wait_ended(self) -> bool:
        self._notices("broker 2 (process 8) was killed")
        return True


@pytest.mark.parametrize("keep", [False, True])
def test_deaths_are_told_while_the_cluster_is_kept_and_not_while_the_demo_shows_its_own(
    keep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing(*_: Any) -> bool:
        return True

    for step in ("_write_batches", "_live_and_kill", "_compare", "_show_partitions"):
        monkeypatch.setattr(Demo, step, nothing)
    notices = Notices()
    demo = Demo(Cluster(tmp_path, notices), Screen(), notices, keep=keep)
    assert demo.run() == 0
    told = "sparklog: broker 2 (process 8) was killed\n"
    shown = capsys.readouterr()
    assert shown.err == (told if keep else "")
    assert (Cluster.page_url in shown.out) is keep
    assert ("make demo DEMO_OPTIONS=--keep" in shown.out) is not keep
    demo.hush()
    notices("too late")
    assert capsys.readouterr().err == ""
