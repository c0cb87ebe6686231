import pytest

from sparklog.testing.pytest_plugin import cluster_options

pytestmark = pytest.mark.integration

SAME_CLUSTER = """
def test_first(sparklog_cluster):
    sparklog_cluster.create_topic("events")

def test_second(sparklog_cluster):
    assert "events" in sparklog_cluster.admin.list_topics()
"""


def test_each_test_has_a_cluster_of_its_own(run_pytest) -> None:
    result = run_pytest(test_own__py=SAME_CLUSTER.replace('" in', '" not in'))
    assert result.returncode == 0, result.stdout
    assert "2 passed" in result.stdout


def test_the_settings_choose_scope_size_and_brokers_settings(run_pytest) -> None:
    settings = """[pytest]
sparklog_cluster_scope = session
sparklog_cluster_brokers = 2
sparklog_cluster_settings =
    min.insync.replicas=2
    num.partitions = 5
"""
    test = """
def test_third(sparklog_cluster):
    assert len(sparklog_cluster.admin.describe_cluster().brokers) == 2
    assert sparklog_cluster.config.get_int("num.partitions") == 5
"""
    result = run_pytest(pytest__ini=settings, test_shared__py=SAME_CLUSTER + test)
    assert result.returncode == 0, result.stdout
    assert "3 passed" in result.stdout


def test_the_command_line_asks_for_a_real_zookeeper(run_pytest) -> None:
    test = """
def test_address(sparklog_cluster):
    assert sparklog_cluster.zookeeper.startswith("127.0.0.1:")
"""
    result = run_pytest("--sparklog-zookeeper=real", test_real__py=test)
    assert result.returncode == 0, result.stdout


class Config:
    """pytest's configuration with one line in its file."""

    def __init__(self, name: str, value: object) -> None:
        self.values = {
            "sparklog_cluster_brokers": "3",
            "sparklog_cluster_zookeeper": "memory",
            "sparklog_cluster_settings": [],
            name: value,
        }

    def getini(self, name: str) -> object:
        return self.values[name]

    def getoption(self, name: str) -> None:
        assert name == "--sparklog-zookeeper"


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("sparklog_cluster_brokers", "no", "sparklog_cluster_brokers = no: must be a number from 1 up"),
        ("sparklog_cluster_zookeeper", "x", "sparklog_cluster_zookeeper = x: must be 'memory' or 'real'"),
        ("sparklog_cluster_settings", ["a"], "sparklog_cluster_settings: 'a' must be name=value"),
    ],
)
def test_a_setting_that_is_none_is_refused_with_the_remedy(name, value, complaint) -> None:
    with pytest.raises(pytest.UsageError, match=complaint):
        cluster_options(Config(name, value))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("sparklog_cluster_scope = foo", "must be one of session, package, module, class, function"),
        ("sparklog_cluster_brokers = 0", "must be a number from 1 up"),
    ],
)
def test_a_setting_that_cannot_work_is_wrong_usage_before_any_test_runs(run_pytest, line, complaint) -> None:
    result = run_pytest(pytest__ini=f"[pytest]\n{line}\n", test_none__py="def test_nothing(): pass\n")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert result.stderr == f"ERROR: {line}: {complaint}\n\n"
    assert result.stdout == ""


def test_nothing_is_imported_for_tests_that_need_no_cluster(run_pytest) -> None:
    test = """
import sys

def test_modules():
    loaded = {name for name in sys.modules if name.startswith("sparklog")}
    assert loaded == {"sparklog", "sparklog.testing", "sparklog.testing.pytest_plugin"}
"""
    result = run_pytest(test_modules__py=test)
    assert result.returncode == 0, result.stdout
