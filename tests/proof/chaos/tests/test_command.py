"""The command's options, its folders, and how a run goes on from what is there."""

import json
from dataclasses import asdict

import pytest

from chaos import command
from chaos.command import (
    begin,
    default_folder,
    known_parts,
    main,
    parsed,
    write_report,
)
from chaos.report import Part, Window


def _part(seed=1, **fields):
    windows = [Window(1, "kill-leader", "broker 1", 0, 1, 2, 0.5, 9)]
    return Part(seed, 60.0, windows, sends={"ok": 3}, **fields)


def _finish(out, number, part):
    folder = out / f"part-{number}"
    if not (out / "run.json").exists():
        begin(out, parsed([]))
    folder.mkdir(parents=True)
    (folder / "part.json").write_text(json.dumps({**asdict(part), "verdict": part.verdict}))


def test_a_run_goes_on_after_its_last_whole_part(tmp_path):
    _finish(tmp_path, 1, _part(seed=7))
    _finish(tmp_path, 2, _part(seed=8, not_run={"power-cut": "needs root"}))
    (tmp_path / "part-3").mkdir()  # was cut short
    assert known_parts(tmp_path) == [_part(seed=7), _part(seed=8, not_run={"power-cut": "needs root"})]


def test_a_folder_that_is_not_empty_is_only_used_to_go_on(tmp_path, capsys):
    (tmp_path / "something").touch()
    assert main(["--out", str(tmp_path)]) == 2
    assert "add --resume, or name another folder" in capsys.readouterr().err


def test_a_finished_run_tells_its_verdict_again_and_runs_nothing(tmp_path, capsys):
    _finish(tmp_path, 1, _part())
    assert main(["--out", str(tmp_path), "--resume", "--minutes", "1"]) == 0
    assert "CLEAN: 1.0 minutes in 1 parts, 1 windows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--seed", "7"], "seed was 1, and is 7"),
        (["--only", "kill-leader"], "only was None, and is ['kill-leader']"),
        (["--spark", "none"], "spark was workers, and is none"),
        (["-c", "log.flush.acks=fsync"], "settings was [], and is ['log.flush.acks=fsync']"),
    ],
)
def test_a_run_goes_on_with_its_own_options_only(options, told, tmp_path, capsys):
    _finish(tmp_path, 1, _part())
    assert main(["--out", str(tmp_path), "--resume", "--minutes", "1", *options]) == 2
    assert told in capsys.readouterr().err


def test_a_run_goes_on_with_its_own_code_only(tmp_path, capsys, monkeypatch):
    _finish(tmp_path, 1, _part())
    now = {**command.surroundings(), "commit": "1234567"}
    monkeypatch.setattr(command, "surroundings", lambda: now)
    assert main(["--out", str(tmp_path), "--resume", "--minutes", "1"]) == 2
    assert "and is 1234567" in capsys.readouterr().err


def test_parts_of_who_knows_what_are_not_gone_on_with(tmp_path, capsys):
    _finish(tmp_path, 1, _part())
    (tmp_path / "run.json").unlink()
    assert main(["--out", str(tmp_path), "--resume", "--minutes", "1"]) == 2
    assert "run.json is missing" in capsys.readouterr().err


def test_what_was_found_before_is_still_found_when_a_run_goes_on(tmp_path, capsys):
    _finish(tmp_path, 1, _part(findings=["t/0: lost"]))
    assert main(["--out", str(tmp_path), "--resume", "--minutes", "60"]) == 1
    assert "found: t/0: lost" in capsys.readouterr().out


def test_too_little_is_neither_clean_nor_a_finding(tmp_path, capsys):
    _finish(tmp_path, 1, _part(invalid=["too few acknowledgements"]))
    assert main(["--out", str(tmp_path), "--resume", "--minutes", "1"]) == 2
    assert "proves nothing: too few acknowledgements" in capsys.readouterr().out


def test_a_kind_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        parsed(["--only", "kill-leader", "meteor"])
    assert ended.value.code == 2
    assert "there is no fault meteor" in capsys.readouterr().err


def test_logins_of_an_open_cluster_cannot_change(capsys):
    with pytest.raises(SystemExit) as ended:
        parsed(["--only", "kill-leader", "take-rule"])
    assert ended.value.code == 2
    assert "take-rule: an open cluster has no logins: add --secured" in capsys.readouterr().err
    assert parsed(["--only", "take-rule", "--secured"]).secured


def test_an_order_is_one_of_named_kinds(capsys):
    with pytest.raises(SystemExit) as ended:
        parsed(["--in-order"])
    assert ended.value.code == 2
    assert "--in-order takes its order from --only" in capsys.readouterr().err


def test_a_run_in_order_is_over_when_each_has_had_its_turn(tmp_path, capsys):
    arguments = ["--in-order", "--only", "kill-leader", "--out", str(tmp_path)]
    begin(tmp_path, parsed(arguments))
    _finish(tmp_path, 1, _part())
    assert main([*arguments, "--resume"]) == 0
    assert "CLEAN: 1.0 minutes in 1 parts, 1 windows" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--minutes", "--part-minutes", "--rate", "--windows"])
def test_a_run_of_nothing_is_refused(option, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--out", str(tmp_path / "run"), option, "0"])
    assert ended.value.code == 2
    assert "give more than 0" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_runs_get_folders_of_their_own_and_go_on_in_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    assert default_folder(is_resumed=False) == default_folder(is_resumed=True) == tmp_path / "run-1"
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-9").mkdir()
    assert default_folder(is_resumed=False) == tmp_path / "run-10"
    assert default_folder(is_resumed=True) == tmp_path / "run-9"


def test_the_report_names_versions_and_every_window(tmp_path):
    write_report(tmp_path, [_part()])
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report["versions"]) >= {"Python", "Linux", "confluent-kafka", "kafka-python", "pyspark"}
    assert [window["what"] for window in report["windows_in_full"]] == ["broker 1"]
    assert "| kill-leader | 1 | 0.5 | 0.5 |" in (tmp_path / "report.md").read_text()


def test_the_report_says_how_many_acknowledged_sends_were_not_judged(tmp_path):
    write_report(tmp_path, [_part(not_judged={"topic deleted": 2}), _part(seed=2)])
    told = "sends: 6 ok; 2 acknowledged and not judged (2 topic deleted); "
    assert told in (tmp_path / "report.txt").read_text()
    assert f"- {told}" in (tmp_path / "report.md").read_text()
    assert json.loads((tmp_path / "report.json").read_text())["not_judged"] == {"topic deleted": 2}


def test_parts_of_before_the_count_of_what_was_not_judged_can_be_gone_on_with(tmp_path):
    _finish(tmp_path, 1, _part())
    path = tmp_path / "part-1" / "part.json"
    fields = json.loads(path.read_text())
    del fields["not_judged"]
    path.write_text(json.dumps(fields))
    assert known_parts(tmp_path) == [_part()]
