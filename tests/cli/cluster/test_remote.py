"""``sparklog remote check``: the table, the verdict, and whose store it is."""

import json
from pathlib import Path

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.cli.main import main
from sparklog.remote import probe
from sparklog.remote.open_store import open_store
from sparklog.remote.ownership import claim, owner_of


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/history"


def test_a_fit_store_gets_a_table_a_verdict_and_no_objects(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["remote", "check", url]) == DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["ability", "has", "seen"]
    assert [line.split()[-2:] for line in lines[1:-2]] == [["yes", "-"]] * 8
    assert lines[-1] == f"{url} is fit to hold history, and belongs to no cluster yet"
    assert open_store(url).names("") == []


def test_json_is_one_object_with_the_abilities(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["remote", "check", url, "--json"]) == DONE
    told = json.loads(capsys.readouterr().out)
    assert (told["url"], told["fit"], told["cluster_id"]) == (url, True, None)
    assert [one["has"] for one in told["abilities"]] == [True] * 8


def test_an_unfit_store_is_refused_and_not_claimed(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lists_nothing(self: object) -> list[str]:
        return []

    monkeypatch.setattr(probe._Probe, "_listed", lists_nothing)
    assert main(["remote", "check", url, "--claim", "ours"]) == FAILED
    out, err = capsys.readouterr()
    assert "NO   0 objects are listed, not 2" in out
    assert f"{url} is NOT fit to hold history" in err
    assert owner_of(open_store(url)) is None


def test_a_store_is_claimed_once_and_another_cluster_is_refused(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["remote", "check", url, "--claim", "ours"]) == DONE
    assert "belongs to cluster 'ours'" in capsys.readouterr().out
    assert main(["remote", "check", url, "--cluster-id", "ours"]) == DONE
    assert main(["remote", "check", url, "--cluster-id", "theirs"]) == FAILED
    assert "belongs to cluster 'ours', not to 'theirs'" in capsys.readouterr().err
    assert main(["remote", "check", url, "--claim", "theirs"]) == WRONG_USAGE
    assert "choose another folder" in capsys.readouterr().err


def test_a_mark_that_is_no_clusters_belongs_to_somebody_all_the_same(url: str) -> None:
    store = open_store(url)
    claim(store, "a" * 63)
    assert owner_of(store) == "a" * 63
