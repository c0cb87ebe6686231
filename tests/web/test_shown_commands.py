"""Each command that the page shows runs as it is copied: the program's own parser reads it, and what only
looks is run.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from sparklog.cli.command import Command, build_parser
from sparklog.cli.main import main
from sparklog.cli.registry import load_command
from sparklog.client.coordinator import Coordinator
from sparklog.client.group.committed_offsets import commit_offsets
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from sparklog.web.page_app import STATIC, VIEWS, build_app
from sparklog.web.page_settings import PageSettings
from sparklog.web.page_viewers import OneViewer
from sparklog.web.shown_commands import of_broker, of_group, shown
from sparklog.web.verdict import Facts, verdict_of
from sparklog.web.viewer import Viewer
from sparklog.wire.messages.discovery.cluster_report import ClusterReportResponse, ReportedBroker

OPTIONS = "--root '/tmp/a b'"
CHANGES = re.compile("sparklog brokers (start|restart|cancel)")
GROUP = "it's -- a/group"


def parsed(text: str) -> Any:
    """What the program understands; SystemExit for what it refuses."""
    program, name, *arguments = shlex.split(text)
    assert program == "sparklog"
    command: Command = load_command(name)
    return build_parser(command).parse_args(arguments)


def commands_in(found: object) -> Iterator[str]:
    """All that stand in an answer, however deep."""
    if isinstance(found, dict):
        yield from [found["command"]] if isinstance(found.get("command"), str) else []
        for value in found.values():
            yield from commands_in(value)
    elif isinstance(found, list):
        for value in found:
            yield from commands_in(value)


@pytest.mark.parametrize("name", ["billing", "-x", "--help", "a b", "it's", "*", "ü/../;rm"])
def test_a_name_of_any_characters_comes_through_the_shell_and_the_parser(name: str) -> None:
    reset = parsed(of_group(OPTIONS, name, is_query=False)["command"])
    assert (reset.group, reset.all_topics, reset.to_earliest, reset.execute) == (name, True, True, False)
    described = parsed(of_group(OPTIONS, name, is_query=True)["command"])
    assert (described.groups, str(described.root)) == ([name], "/tmp/a b")


def test_a_broker_that_was_stopped_is_started_and_another_one_is_restarted() -> None:
    stopped = of_broker(OPTIONS, ReportedBroker(broker_id=3, wish="stopped"))
    assert stopped == {"does": "To start it", "command": f"sparklog brokers start 3 {OPTIONS}"}
    assert parsed(stopped["command"]).brokers == [3]
    serving = of_broker(OPTIONS, ReportedBroker(broker_id=3, wish="serving"))
    assert serving == {"does": "To restart it", "command": f"sparklog brokers restart 3 {OPTIONS}"}


def test_each_finding_of_the_overview_has_a_command_that_the_program_takes() -> None:
    silent = verdict_of(Facts(None, OPTIONS, silence="nobody answers"))
    away = ReportedBroker(broker_id=1, state="away", wish="serving")
    report = ClusterReportResponse(brokers=[away], leaderless=1, under_replicated=1, age_ms=60_000)
    for finding in (*silent.findings, *verdict_of(Facts(report, OPTIONS)).findings):
        assert str(parsed(finding.command).root) == "/tmp/a b"


def test_a_broken_command_is_found_by_the_parser() -> None:
    with pytest.raises(SystemExit):
        parsed(shown(OPTIONS, "groups reset-offsets", name="billing")["command"])


def test_the_browser_makes_no_command_of_its_own() -> None:
    made = [part for part in STATIC.rglob("*.js") if re.search(r"command\([`'\"]", part.read_text("utf-8"))]
    assert made == []


def test_the_offsets_of_a_querys_group_are_not_offered_to_be_moved() -> None:
    assert "reset-offsets" not in of_group(OPTIONS, "reports", is_query=True)["command"]


@pytest.mark.integration
def test_every_view_but_the_overview_names_commands_and_those_that_look_run(
    cluster: InProcessCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.create_topic("-orders", partitions=1)
    cluster.produce("-orders", [("k", "v")] * 10)
    commit_offsets(Coordinator(cluster.client, GROUP), {TopicPartition("-orders", 0): 3})
    options = f"--bootstrap-server {cluster.bootstrap_servers}"
    viewer = Viewer(cluster.client, options=options)
    browser = TestClient(build_app(OneViewer(viewer), PageSettings()), base_url="http://localhost")
    views = [path.format(broker="1", topic="-orders") for path in VIEWS if path != "/"]
    for path in (*views, f"/groups?group={quote(GROUP)}"):
        found = list(commands_in(browser.get(f"/api{path}").json()))
        assert found, path
        for text in found:
            assert parsed(text).bootstrap_server == cluster.bootstrap_servers, text
            if not CHANGES.match(text):
                assert main(shlex.split(text)[1:]) == 0, (text, capfd.readouterr().err)
