"""The name under which the tasks of one execution, and no others, find their cut."""

from typing import Any

import pytest

from sparklog_datasource.batch import cuts
from sparklog_datasource.batch.cuts import name_for_task
from sparklog_datasource.reads.read_options import ReadOptions

LOCAL = {
    "spark.app.id": "local-1700000000000",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.port": "40001",
    "spark.sql.execution.id": "3",
}


class Context:
    def __init__(self, properties: dict[str, str]) -> None:
        self.properties = properties

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 (Spark's name)
        return self.properties.get(name)

    def stageId(self) -> int:  # noqa: N802 (Spark's name)
        return 7


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The name of the cut of a task with these local properties."""

    def name(properties: dict[str, str], plan: str = "plan", subscribe: str = "t") -> str:
        context = Context(properties)
        monkeypatch.setattr(cuts.TaskContext, "get", lambda: context)
        options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": subscribe}
        return name_for_task(ReadOptions.of_batch(options), plan)

    return name


def test_all_scans_of_a_subscription_in_one_execution_have_one_cut(named: Any) -> None:
    assert named(LOCAL, "one plan") == named(LOCAL, "another plan")
    assert named(LOCAL) != named(LOCAL, subscribe="u")
    assert named(LOCAL) != named({**LOCAL, "spark.sql.execution.id": "4"})


def test_two_local_applications_that_started_in_one_millisecond_have_a_cut_each(named: Any) -> None:
    assert named(LOCAL) != named({**LOCAL, "spark.driver.port": "40002"})
    assert named(LOCAL) != named({**LOCAL, "spark.driver.host": "10.0.0.1"})


def test_without_an_execution_a_plan_has_a_cut_in_each_stage(named: Any) -> None:
    bare = {"spark.app.id": LOCAL["spark.app.id"]}
    assert named(bare, "one plan") == f"cut-{LOCAL['spark.app.id']}-one plan-7"
    assert named({}, "one plan") != named({}, "another plan")


def test_a_name_is_as_short_as_the_cluster_takes_it(named: Any) -> None:
    host = ".".join(["h" * 63] * 4)
    assert len(named({**LOCAL, "spark.driver.host": host}, subscribe=",".join(["t" * 200] * 20))) < 1_000
