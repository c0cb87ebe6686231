"""The data file of schemas is what kio's say, and needs no kio."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from sparklog.wire.schema import load_schema
from sparklog.wire.versions import KNOWN_VERSIONS

MAKER = Path(__file__).parents[2] / "scripts" / "make_schemas.py"


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_schemas", MAKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_maker_makes_of_kio() -> None:
    made = maker()
    assert made.FILE.read_text() == made.schemas_text(), f"run {MAKER}"


def test_every_known_version_has_a_schema() -> None:
    for api_key, api in KNOWN_VERSIONS.items():
        for version in range(api.min, api.max + 1):
            assert load_schema(api_key, version, "response").fields


def test_a_version_that_the_file_lacks_names_what_to_run() -> None:
    with pytest.raises(KeyError, match=r"Produce request version 99: run scripts/make_schemas\.py"):
        load_schema(0, 99, "request")
