"""``conf/monitoring``: each metric that rules and dashboard name exists, and each alert says what to do.

``make page`` tries them in a Prometheus (tests/page/test_monitoring.py).
"""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[3]
MONITORING: Final = ROOT / "conf" / "monitoring"
ROW: Final = re.compile(r"\| `(sparklog_\w+)` \| (\w+) \|")
AT_THE_PAGE: Final = re.compile(r"\| `(sparklog_\w+)` \| [^|]+ \| [^|]+ \|$", re.MULTILINE)
NAME: Final = re.compile(r"\bsparklog_\w+")
ALERT: Final = re.compile(r"^      - alert: (\w+)\n((?:(?!      - alert).*\n?)*)", re.MULTILINE)


def metrics_of_the_page() -> dict[str, str]:
    """Each metric's kind. tests/cluster/test_metrics.py compares the page with what servers serve."""
    return dict(ROW.findall((ROOT / "docs" / "metrics.md").read_text()))


def names_of_samples() -> set[str]:
    """As Prometheus stores them."""
    names = set(AT_THE_PAGE.findall((ROOT / "docs" / "metrics.md").read_text()))
    assert {"sparklog_broker_up", "sparklog_group_lag_records"} == names
    for name, kind in metrics_of_the_page().items():
        of_histogram = {f"{name}_{part}" for part in ("bucket", "sum", "count")}
        names |= of_histogram if kind == "histogram" else {name}
    return names


def alerts() -> dict[str, str]:
    return dict(ALERT.findall((MONITORING / "alerts.yml").read_text()))


def dashboard() -> Any:
    return json.loads((MONITORING / "dashboard.json").read_text())


def expressions() -> dict[str, list[str]]:
    """Of each panel, by its title."""
    return {one["title"]: [target["expr"] for target in one["targets"]] for one in dashboard()["panels"]}


def test_each_metric_of_an_alert_exists() -> None:
    texts = [text for body in alerts().values() for text in re.findall(r"expr: (.*)", body)]
    assert len(texts) == len(alerts()) > 10
    named = {name for text in texts for name in NAME.findall(text)}
    assert named - names_of_samples() == set()


def test_each_metric_of_the_dashboard_exists() -> None:
    named = {name for texts in expressions().values() for text in texts for name in NAME.findall(text)}
    assert len(named) > 20
    assert named - names_of_samples() == set()


def test_a_counter_is_shown_as_a_rate_or_as_its_sum() -> None:
    kinds = metrics_of_the_page()
    for title, texts in expressions().items():
        for text in texts:
            counters = [name for name in NAME.findall(text) if kinds.get(name) == "counter"]
            shown = text.count("rate(") + text.count("increase(") or text.startswith("sum(")
            assert not counters or shown, f"{title}: {text}"


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_says_how_bad_it_is_and_what_to_do(alert: str) -> None:
    body = alerts()[alert]
    assert alert.startswith("Sparklog")
    assert re.search(r"labels: \{severity: (critical|warning)\}", body)
    for annotation in ("summary", "remedy"):
        assert len(re.findall(rf"^          {annotation}: \S+ \S+", body, re.MULTILINE)) == 1
    assert 'job="sparklog"' in body


def test_panels_do_not_cover_each_other() -> None:
    places = [panel["gridPos"] for panel in dashboard()["panels"]]
    for one, other in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(places)


def test_the_dashboard_asks_the_data_source_that_is_chosen() -> None:
    (variable,) = dashboard()["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    assert {panel["datasource"]["uid"] for panel in dashboard()["panels"]} == {"${datasource}"}


def test_prometheus_loads_the_rules_that_lie_beside_its_settings() -> None:
    text = (MONITORING / "prometheus.yml").read_text()
    assert "rule_files:\n  - alerts.yml\n" in text
    assert "job_name: sparklog\n" in text
