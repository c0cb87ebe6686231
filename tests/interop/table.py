"""The table client by feature that a run writes: green, or a reason.

Results are kept in a file as well, so that a run of a few cases replaces these and leaves the others.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clients import CLIENTS, SARAMA, Client
from tests.interop.known import OF_OURS

GREEN, BEYOND, RED = "green", "beyond the client", "red"
MATRIX_FILES = ("test_records", "test_groups", "test_transactions", "test_administration", "test_security")
LISTS = {
    "test_kafka_tools": "Apache Kafka's tools, release 3.9.1",
    "test_security_tools": "Apache Kafka's tools and kcat on a secured cluster",
    "test_followers": "Answers of followers",
    "test_order_of_plain_producers": "Order while a leader hands over, its requests waiting",
    "test_kcat": "kcat",
    "test_programs": "Programs that other people run",
    "test_spark_connector": "Spark's Kafka connector, release 4.2.0",
    "test_security_of_spark": "Spark's Kafka connector on a secured cluster",
    "test_franz_go_suite": "franz-go's own integration tests",
}
NOTES = {
    "test_programs": (
        "Faust has restored its table before it gets more records: it loses some of those that\n"
        "wait meanwhile, on Kafka too (its issue 596)."
    ),
    "test_franz_go_suite": "Each with 4,000 records. Not run: share groups, KIP-848, SCRAM, OAUTHBEARER.",
}
MESSAGE_CHARACTERS = 160

INTRODUCTION = """# Clients and tools

Other people's clients and tools, unchanged, at pinned versions, upon three sparklog brokers: `make clients`
fetches them (`scripts/clients-setup`) and writes this page. Each case runs with every client; librdkafka
reads what that writes, and the other way round (`tests/interop/driver.py`).

✓ works. – is beyond the client, on Kafka too, or was not run. ✗ is not as on Kafka. Numbers lead to
[reasons](#reasons).

"""


@dataclass(frozen=True)
class Result:
    """What one case did with one client. ``client`` is empty where the case is a tool's own."""

    file: str
    case: str
    client: str
    outcome: str
    reason: str = ""


class Table:
    """A pytest plugin: collects results, and writes them when the run ends."""

    def __init__(self, results: str | None, page: str | None) -> None:
        self._results_path = None if results is None else Path(results)
        self._page = None if page is None else Path(page)
        self._results: dict[tuple[str, str, str], Result] = {}
        self._versions: dict[str, str] = {}
        if self._results_path is not None and self._results_path.exists():
            kept = json.loads(self._results_path.read_text())
            self._versions = kept["versions"]
            for row in kept["results"]:
                self._add(Result(**row))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Function, call: Any) -> Iterator[Any]:
        report = yield
        if item.get_closest_marker("clients") is not None and (
            report.when == "call" or report.outcome != "passed"
        ):
            self._versions |= dict(report.user_properties)
            self._add(_result_of(item, report))
        return report

    def pytest_sessionfinish(self) -> None:
        results = list(self._results.values())
        if self._results_path is not None:
            kept = {"versions": self._versions, "results": [asdict(result) for result in results]}
            self._results_path.write_text(json.dumps(kept, indent=1))
        if self._page is not None and results:
            self._page.write_text(page(results, self._versions))

    def _add(self, result: Result) -> None:
        self._results[result.file, result.case, result.client] = result


def _result_of(item: pytest.Function, report: pytest.TestReport) -> Result:
    params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    client = params.pop("client", "")
    case = item.originalname.removeprefix("test_").replace("_", " ")
    if params:
        shown = item.callspec.id
        for part in (f"{client}-", f"-{client}"):
            shown = shown.replace(part, "") if client else shown
        case = shown if item.path.stem == "test_franz_go_suite" else f"{case}: {shown}"
    outcome, reason = GREEN, ""
    if report.skipped:
        reason = getattr(report, "wasxfail", None) or report.longrepr[2].removeprefix("Skipped: ")
        outcome = RED if reason in OF_OURS.values() else BEYOND
    elif report.failed:
        outcome = RED
        crash = getattr(report.longrepr, "reprcrash", None)
        message = str(report.longrepr) if crash is None else crash.message
        reason = " ".join(message.split())[:MESSAGE_CHARACTERS]
    return Result(item.path.stem, case, client, outcome, reason)


class Reasons:
    """Footnotes, each reason once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def cell(self, result: Result | None) -> str:
        if result is None:
            return ""
        if result.outcome == GREEN:
            return "✓"
        number = self._numbers.setdefault(result.reason, len(self._numbers) + 1)
        return f"{'–' if result.outcome == BEYOND else '✗'} {number}"

    def lines(self) -> Iterator[str]:
        for reason, number in self._numbers.items():
            yield f"{number}. {_escaped(reason)}"


def page(results: Iterable[Result], versions: dict[str, str]) -> str:
    """The page in Markdown."""
    results = list(results)
    reasons = Reasons()
    counts = {
        outcome: sum(result.outcome == outcome for result in results) for outcome in (GREEN, BEYOND, RED)
    }
    parts = [
        INTRODUCTION,
        f"{counts[GREEN]} cases are green, {counts[BEYOND]} are beyond the client or could not be run, "
        f"{counts[RED]} are not as on Kafka.\n",
        "\n## Clients\n\n" + "".join(f"- {name}: {version}\n" for name, version in versions.items()) + "\n",
        *_matrix(results, CLIENTS, reasons),
        "\n## sarama as each release of Kafka\n\n",
        *_sarama(results, reasons),
    ]
    for file, title in LISTS.items():
        note = f"{NOTES[file]}\n\n" if file in NOTES else ""
        parts += [f"\n## {title}\n\n{note}", *_list(results, file, reasons)]
    parts += ["\n## Reasons\n\n", *(line + "\n" for line in reasons.lines())]
    return "".join(parts)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def _matrix(results: list[Result], clients: tuple[Client, ...], reasons: Reasons) -> Iterator[str]:
    yield _row(["", *(client.name for client in clients)])
    yield _row(["---"] * (len(clients) + 1))
    for file in MATRIX_FILES:
        of_file = [result for result in results if result.file == file]
        for case in dict.fromkeys(result.case for result in of_file):
            by_client = {result.client: result for result in of_file if result.case == case}
            yield _row([_escaped(case), *(reasons.cell(by_client.get(client.name)) for client in clients)])


def _sarama(results: list[Result], reasons: Reasons) -> Iterator[str]:
    of_file = [result for result in results if result.file == "test_sarama_versions"]
    cases = list(dict.fromkeys(result.case for result in of_file))
    yield _row(["", *(case.removeprefix("sarama ") for case in cases)])
    yield _row(["---"] * (len(cases) + 1))
    for client in SARAMA:
        by_case = {result.case: result for result in of_file if result.client == client.name}
        yield _row(
            [client.name.removeprefix("sarama as "), *(reasons.cell(by_case.get(case)) for case in cases)]
        )


def _list(results: list[Result], file: str, reasons: Reasons) -> Iterator[str]:
    yield _row(["", ""])
    yield _row(["---", "---"])
    for result in results:
        if result.file == file:
            yield _row([_escaped(result.case), reasons.cell(result)])
