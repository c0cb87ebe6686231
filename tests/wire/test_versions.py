"""The version table: against kio's schemas, and against the page that publishes it."""

import importlib
import re
from pathlib import Path

import pytest

from sparklog.core.apis.api import NEVER, Api, ListenerKind
from sparklog.core.apis.api_table import APIS
from sparklog.wire import messages as message_packages
from sparklog.wire.codec import message_class
from sparklog.wire.extensions import EXTENSIONS
from sparklog.wire.schema import load_schema
from sparklog.wire.versions import (
    API_VERSIONS,
    INTERNAL_VERSIONS,
    KNOWN_VERSIONS,
    OWN_VERSIONS,
)

PAGE = (Path(__file__).parents[2] / "docs" / "format" / "wire.md").read_text()


@pytest.mark.parametrize("api_key", KNOWN_VERSIONS)
def test_the_table_agrees_with_the_schemas(api_key: int) -> None:
    api = KNOWN_VERSIONS[api_key]
    for version in range(api.min, api.max + 1):
        assert load_schema(api_key, version, "request").flexible == api.is_flexible(version)
        assert load_schema(api_key, version, "response").flexible == api.is_flexible(version)
        if api_key in OWN_VERSIONS:
            continue
        module = importlib.import_module(f"kio.schema.{api.module}.v{version}.request")
        assert getattr(module, f"{api.name}Request").__api_key__ == api_key


@pytest.mark.scenario("S20")
def test_clients_are_offered_every_version_from_0_on() -> None:
    assert {api.min for api in API_VERSIONS.values()} == {0}


def test_our_own_apis_are_far_above_kafka_s() -> None:
    assert max(API_VERSIONS.keys() | INTERNAL_VERSIONS.keys()) < 1_000
    assert min(OWN_VERSIONS) >= 10_000


def test_every_row_has_its_messages_and_no_message_is_without_a_row() -> None:
    messages = Path(message_packages.__file__).parent
    modules = {path.relative_to(messages) for path in messages.glob("*/*.py") if path.stem != "__init__"}
    assert modules == {Path(api.family, f"{api.module}.py") for api in KNOWN_VERSIONS.values()}
    for key in KNOWN_VERSIONS:
        assert message_class(key, "request").API_KEY == message_class(key, "response").API_KEY == key


def _table_under(heading: str) -> set[tuple[str, ...]]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in section.splitlines()
        if "|" in line
    ]
    return set(rows[2:])


@pytest.mark.parametrize(
    ("heading", "table"),
    [
        ("Served to clients", API_VERSIONS),
        ("Between brokers and controller", INTERNAL_VERSIONS),
        ("Of sparklog alone", OWN_VERSIONS),
    ],
)
def test_the_page_has_the_table_as_it_is(heading: str, table: dict[int, Api]) -> None:
    expected = {
        (
            str(key),
            api.name,
            f"{api.min}-{api.max}" if api.min != api.max else str(api.min),
            "never" if api.flexible_from == NEVER else str(api.flexible_from),
        )
        for key, api in table.items()
    }
    assert _table_under(heading) == expected


def test_the_page_has_the_rules_of_every_api() -> None:
    expected = {
        (
            str(key),
            api.name,
            ", ".join(kind.value for kind in ListenerKind if kind in api.listeners),
            "; ".join(map(str, api.rights)) or "-",
            api.quota.value,
        )
        for key, api in APIS.items()
    }
    assert _table_under("Listeners, rights and quotas") == expected


def test_the_page_names_every_tag_of_ours() -> None:
    rows = {(cells[0], re.sub("`", "", cells[1])) for cells in _table_under("Our own tags")}
    assert rows == {
        (str(extension.tag), f"{name}.{extension.field}")
        for (_, _, name), group in EXTENSIONS.items()
        for extension in group
    }
