"""A secret is shown nowhere, and a reference is known from a literal secret."""

import copy
import json
import pickle
from dataclasses import asdict, dataclass

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.secrets import Reference, Secret, is_reference, parts_of

PLANTED = "planted-password"


@dataclass(frozen=True)
class Holder:
    secret: Secret


def test_a_secret_shows_stars_wherever_it_is_printed() -> None:
    secret = Secret(PLANTED, "ssl.key.password")
    holder = Holder(secret)
    shown = [
        repr(secret),
        str(secret),
        f"{secret} {secret!r}",
        f"{[secret]}",
        repr(holder),
        str(asdict(holder)),
    ]
    shown.append(json.dumps({"password": secret}, default=str))
    assert [text for text in shown if PLANTED in text or "***" not in text] == []
    with pytest.raises(TypeError) as refused:
        json.dumps(secret)
    assert PLANTED not in str(refused.value)
    assert secret.reveal() == PLANTED


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_secret_does_not_pickle(protocol: int) -> None:
    with pytest.raises(TypeError, match="a secret is not pickled: send its reference"):
        pickle.dumps(Holder(Secret(PLANTED)), protocol)


def test_secrets_with_one_text_are_equal_and_copies_are_themselves() -> None:
    secret = Secret(PLANTED)
    assert secret == Secret(PLANTED, "another.setting")
    assert secret != Secret("other")
    assert secret != PLANTED
    assert len({secret, Secret(PLANTED)}) == 1
    assert copy.copy(secret) is copy.deepcopy(secret) is secret


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("${file:/etc/s.properties:key}", [Reference("file", "/etc/s.properties", "key")]),
        ("${directory:/run/secrets:tls:key}", [Reference("directory", "/run/secrets", "tls:key")]),
        ("${env:KEY}", [Reference("env", "", "KEY")]),
        ("a${env:B}c${env:D}", ["a", Reference("env", "", "B"), "c", Reference("env", "", "D")]),
        ("plain", ["plain"]),
        ("", []),
        ("x${fiel:a:b}", ["x${fiel:a:b}"]),
    ],
)
def test_a_text_has_literal_parts_and_references(text: str, parts: list[str | Reference]) -> None:
    assert list(parts_of(text)) == parts
    assert "".join(map(str, parts)) == text


@pytest.mark.parametrize(
    "text", ["${fiel:a:b}", "${env}", " ${vault:x} ", "${file:/etc/s}", "${directory:/etc}"]
)
def test_a_misspelt_reference_is_no_password(text: str) -> None:
    if text == "${env}":
        assert not is_reference(text)
        return
    with pytest.raises(ConfigError, match=r"\$\{file:PATH:KEY\}"):
        is_reference(text)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("${env:A}", True), (" ${env:A} ", True), ("${env:A}${env:B}", True), ("x${env:A}", False), ("", False)],
)
def test_a_reference_alone_hides_nothing(text: str, is_one: bool) -> None:
    assert is_reference(text) is is_one
