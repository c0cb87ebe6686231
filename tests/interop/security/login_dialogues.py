"""Dialogues of logins: what comes first, what is refused, and what a connection may do afterwards."""

import time
from collections.abc import Callable
from typing import Final

from tests.interop.security.personas import ADMIN, NOBODY
from tests.interop.security.secured_sides import SCRAM_USER, TOPIC, set_password
from tests.interop.security.secured_talk import ONCE_IN_S, SecuredTalk

Dialogue = Callable[[SecuredTalk, str], None]
"""Takes a dialogue, and a name that is its own."""
STRANGER: Final = "?"


def a_login_by_plain(talk: SecuredTalk, _: str) -> None:
    talk.plain(NOBODY, by=STRANGER)
    talk.ask("DescribeCluster", by=STRANGER)


def a_login_by_scram(talk: SecuredTalk, _: str) -> None:
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        talk.scram(SCRAM_USER, by=f"{STRANGER}{mechanism}", mechanism=mechanism)
        talk.ask("DescribeCluster", by=f"{STRANGER}{mechanism}")


def wrong_passwords(talk: SecuredTalk, _: str) -> None:
    talk.plain(NOBODY, "guessed", by="? plain")
    talk.ask("DescribeCluster", by="? plain")
    talk.scram(SCRAM_USER, "guessed", by="? scram")


def unknown_users(talk: SecuredTalk, _: str) -> None:
    talk.plain("mallory", by="? plain")
    talk.plain("", by="? empty")
    talk.plain(NOBODY, "", by="? without password")


def users_of_another_mechanism(talk: SecuredTalk, _: str) -> None:
    talk.plain(SCRAM_USER, by="? plain")


def other_authorization_ids(talk: SecuredTalk, _: str) -> None:
    talk.plain(NOBODY, by="? own", authorization=NOBODY)
    talk.plain(NOBODY, by="? other", authorization=ADMIN)


def mechanisms_that_are_off(talk: SecuredTalk, _: str) -> None:
    for mechanism in ("GSSAPI", "OAUTHBEARER", "", "plain"):
        for version in (0, 1):
            by = f"? {mechanism} {version}"
            talk.handshake(mechanism, by=by, version=version)
            talk.plain(NOBODY, by=by)


def requests_before_a_login(talk: SecuredTalk, _: str) -> None:
    for api in ("Metadata", "DescribeCluster", "ListGroups", "SaslAuthenticate"):
        talk.ask(api, by=f"? {api}")


def requests_between_handshake_and_token(talk: SecuredTalk, _: str) -> None:
    for api in ("Metadata", "ApiVersions", "SaslHandshake"):
        by = f"? {api}"
        talk.handshake("PLAIN", by=by)
        talk.ask(api, by=by, **({"mechanism": "PLAIN"} if api == "SaslHandshake" else {}))


def versions_first(talk: SecuredTalk, _: str) -> None:
    known = {"client_software_name": "differ", "client_software_version": "1"}
    error = talk.ask("ApiVersions", by=STRANGER, version=3, **known)
    talk.said[-1].answer = {"error_code": error["error_code"]}  # each system has its own APIs
    talk.plain(NOBODY, by=STRANGER)
    talk.ask("DescribeCluster", by=STRANGER)


def versions_twice(talk: SecuredTalk, _: str) -> None:
    for _number in range(2):
        error = talk.ask("ApiVersions", by=STRANGER, version=0)
        if isinstance(error, dict):
            talk.said[-1].answer = {"error_code": error["error_code"]}


def versions_of_a_client_without_a_name(talk: SecuredTalk, _: str) -> None:
    error = talk.ask("ApiVersions", by=STRANGER, version=3)
    talk.said[-1].answer = {"error_code": error["error_code"]}
    talk.plain(NOBODY, by=STRANGER)


def tokens_that_are_none(talk: SecuredTalk, _: str) -> None:
    for number, token in enumerate(
        (b"", b"\0", b"\0\0", b"\0\0\0\0", b"\0nobody", b"\xff\xfe", b"x" * 10_000)
    ):
        by = f"? plain {number}"
        talk.handshake("PLAIN", by=by)
        talk.token(token, by=by)
    for number, token in enumerate(
        (b"", b"n,,", b"n,,n=carol", b"y,,n=carol,r=x", b"p=tls,,n=carol,r=x", b"\xff")
    ):
        by = f"? scram {number}"
        talk.handshake("SCRAM-SHA-256", by=by)
        talk.masked(talk.token(token, by=by))


def a_token_after_the_last(talk: SecuredTalk, _: str) -> None:
    talk.plain(NOBODY, by=STRANGER)
    talk.token(b"\0nobody\0secret", by=STRANGER)
    talk.ask("DescribeCluster", by=STRANGER)


def a_login_without_a_handshake(talk: SecuredTalk, _: str) -> None:
    talk.token(b"\0nobody\0secret", by=STRANGER)


def each_version_of_tokens(talk: SecuredTalk, _: str) -> None:
    for version in range(3):
        by = f"? {version}"
        talk.handshake("PLAIN", by=by)
        talk.token(b"\0nobody\0secret", by=by, version=version)


def a_login_anew(talk: SecuredTalk, _: str) -> None:
    talk.plain(NOBODY, by=STRANGER)
    talk.plain_again(NOBODY, by=STRANGER)
    talk.ask("DescribeCluster", by=STRANGER)


def a_login_anew_with_a_wrong_password(talk: SecuredTalk, _: str) -> None:
    talk.plain(NOBODY, by=STRANGER)
    talk.plain_again(NOBODY, "guessed", by=STRANGER)


def a_login_anew_as_another_user(talk: SecuredTalk, _: str) -> None:
    talk.plain(NOBODY, by=STRANGER)
    talk.plain_again(ADMIN, by=STRANGER)
    talk.ask("DescribeAcls", by=STRANGER)


def a_login_anew_by_another_mechanism(talk: SecuredTalk, _: str) -> None:
    talk.plain(NOBODY, by=STRANGER)
    talk.plain_again(NOBODY, by=STRANGER, mechanism="SCRAM-SHA-256")


def a_login_anew_that_is_given_up(talk: SecuredTalk, _: str) -> None:
    talk.plain(NOBODY, by=STRANGER)
    time.sleep(ONCE_IN_S)
    talk.handshake("PLAIN", by=STRANGER)
    talk.ask("Metadata", by=STRANGER, topics=[{"name": TOPIC}])


def a_login_anew_at_once(talk: SecuredTalk, _: str) -> None:
    talk.plain(NOBODY, by=STRANGER)
    talk.plain(NOBODY, by=STRANGER)
    talk.ask("DescribeCluster", by=STRANGER)


def changed_passwords(talk: SecuredTalk, name: str) -> None:
    set_password(talk, name)
    talk.said.clear()
    talk.scram(name, by="? before")
    set_password(talk, name, "changed")
    talk.said[:] = talk.said[:3]
    talk.ask("DescribeCluster", by="? before")
    talk.scram(name, by="? old password")
    talk.scram(name, "changed", by="? new password")


def users_of_scram(talk: SecuredTalk, name: str) -> None:
    set_password(talk, name)
    talk.said.clear()
    described = {"users": [{"name": name}, {"name": "mallory"}, {"name": name}]}
    talk.ask("DescribeUserScramCredentials", by=ADMIN, **described)
    talk.ask("DescribeUserScramCredentials", by=ADMIN, users=[{"name": name}])


def changes_of_users_that_cannot_be(talk: SecuredTalk, name: str) -> None:
    def upsert(**fields: object) -> None:
        one = {
            "name": name,
            "mechanism": 1,
            "iterations": 4_096,
            "salt": b"salt",
            "salted_password": b"p" * 32,
        }
        talk.ask("AlterUserScramCredentials", by=ADMIN, upsertions=[one | fields])

    upsert(iterations=4_095)
    upsert(iterations=16_385)
    upsert(mechanism=0)
    upsert(mechanism=3)
    upsert(name="")
    for mechanism in (0, 1, 9):
        talk.ask(
            "AlterUserScramCredentials", by=ADMIN, deletions=[{"name": "mallory", "mechanism": mechanism}]
        )
    twice = [{"name": "mallory", "mechanism": 1}] * 2
    talk.ask("AlterUserScramCredentials", by=ADMIN, deletions=twice)


LOGIN_DIALOGUES: Final[tuple[Dialogue, ...]] = (
    a_login_anew,
    a_login_anew_as_another_user,
    a_login_anew_at_once,
    a_login_anew_by_another_mechanism,
    a_login_anew_that_is_given_up,
    a_login_anew_with_a_wrong_password,
    a_login_by_plain,
    a_login_by_scram,
    a_login_without_a_handshake,
    a_token_after_the_last,
    changed_passwords,
    changes_of_users_that_cannot_be,
    each_version_of_tokens,
    mechanisms_that_are_off,
    other_authorization_ids,
    requests_before_a_login,
    requests_between_handshake_and_token,
    tokens_that_are_none,
    unknown_users,
    users_of_another_mechanism,
    users_of_scram,
    versions_first,
    versions_of_a_client_without_a_name,
    versions_twice,
    wrong_passwords,
)
