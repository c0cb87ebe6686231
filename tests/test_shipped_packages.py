"""The audit's list: what an installation brings, and which licences need somebody to look."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "scripts" / "shipped_packages.py"
SPEC = importlib.util.spec_from_file_location("shipped_packages", PATH)
assert SPEC is not None
assert SPEC.loader is not None
shipped = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(shipped)


def test_an_installation_brings_what_the_product_imports_and_nothing_of_the_tests() -> None:
    packages = shipped.closure(shipped.ROOT_PACKAGE)
    assert {
        "pyspark",
        "pyarrow",
        "kazoo",
        "cryptography",
        "hdfs-native",
        "s3fs",
        "botocore",
    } <= packages.keys()
    assert packages.keys().isdisjoint({"sparklog", "pytest", "mypy", "ruff", "confluent-kafka", "trustme"})
    assert "s3fs" not in shipped.closure("sparklog")


@pytest.mark.parametrize(
    ("metadata", "classifiers", "licence"),
    [
        ({"License-Expression": "Apache-2.0", "License": "other"}, ["License :: X"], "Apache-2.0"),
        (
            {"License": "a text"},
            ["License :: OSI Approved :: MIT License", "License :: OSI Approved :: BSD License"],
            "MIT License, BSD License",
        ),
        (
            {"License": "Apache License\n Version 2.0 " + "x" * 200},
            [],
            ("Apache License Version 2.0 " + "x" * 200)[:80],
        ),
        ({}, ["Programming Language :: Python"], ""),
    ],
)
def test_a_licence_is_what_the_package_says_of_itself(metadata, classifiers, licence) -> None:
    assert shipped.licence_of(metadata, classifiers) == licence


@pytest.mark.parametrize("licence", ["Apache-2.0", "BSD-3-Clause AND 0BSD", "MIT License", "PSF-2.0", "ISC"])
def test_permissive_licences_are_accepted(licence) -> None:
    assert shipped.is_accepted(licence)


@pytest.mark.parametrize(
    "licence", ["", "unknown", "GPL-3.0", "MIT OR LGPL-2.1", "AGPLv3", "Proprietary", "admit"]
)
def test_others_are_looked_at(licence) -> None:
    assert not shipped.is_accepted(licence)


def test_every_package_of_this_installation_has_a_licence_that_will_do(capsys) -> None:
    assert shipped.main(["licences"]) == 0, capsys.readouterr().err
    table = capsys.readouterr().out
    assert "crc32c" in table
    assert "imported unchanged" in table


def test_an_sbom_keeps_the_shipped_components_and_their_edges() -> None:
    sbom = {
        "metadata": {"component": {"bom-ref": "root"}},
        "components": [{"name": "PyArrow", "bom-ref": "a"}, {"name": "pytest", "bom-ref": "p"}],
        "dependencies": [{"ref": "root", "dependsOn": ["a", "p"]}, {"ref": "p"}, {"ref": "a"}],
    }
    kept = shipped.restricted(sbom, ["pyarrow"])
    assert [one["name"] for one in kept["components"]] == ["PyArrow"]
    assert kept["dependencies"] == [{"ref": "root", "dependsOn": ["a"]}, {"ref": "a", "dependsOn": []}]
