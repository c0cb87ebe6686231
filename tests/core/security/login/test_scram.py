"""SCRAM by the RFC's own example, and side against side: who gets in, and what a guesser sees."""

import base64
import re

import pytest

from sparklog.core.security.login.known_users import ScramUsers
from sparklog.core.security.login.mechanism import CredentialsRefused
from sparklog.core.security.login.scram import (
    SCRAM_MECHANISMS,
    SHA_256,
    SHA_512,
    ScramCredential,
    ScramMechanism,
    client_key,
    credential_of,
    credential_text,
    parse_credential,
    xor,
)
from sparklog.core.security.login.scram_client import ScramClient, ServerRefused
from sparklog.core.security.login.scram_messages import (
    MESSAGE_BYTES_MAX,
    MalformedMessage,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
)
from sparklog.core.security.login.scram_server import ScramServer

SALT = b"0123456789abcdef0123"
INVALID = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
)
AUTHORIZATION_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


def credential(
    password: str, mechanism: ScramMechanism = SHA_256, iterations: int = 4_096
) -> ScramCredential:
    return credential_of(mechanism, mechanism.salted(password.encode(), SALT, iterations), SALT, iterations)


def users_with(user: str, password: str, mechanism: ScramMechanism = SHA_256, **terms: int) -> ScramUsers:
    users = ScramUsers(b"secret")
    users.replace_all({user: {mechanism.name: credential(password, mechanism, **terms)}})
    return users


def server_of(users: ScramUsers, mechanism: ScramMechanism = SHA_256) -> ScramServer:
    return ScramServer(mechanism, lambda user: users.credential(mechanism, user), "of-the-server")


def client_of(user: str, password: str, mechanism: ScramMechanism = SHA_256) -> ScramClient:
    return ScramClient(
        mechanism, user, lambda salt, n: mechanism.salted(password.encode(), salt, n), "of-the-client"
    )


def log_in(client: ScramClient, server: ScramServer) -> str | None:
    challenge = server.on_token(client.first())
    assert challenge.user is None
    answer = server.on_token(client.final(challenge.token))
    client.check(answer.token)
    return answer.user


# The example of RFC 7677, 3

RFC_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
RFC_SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
RFC_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
RFC_SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_client_says_what_the_rfc_says() -> None:
    client = ScramClient(
        SHA_256, "user", lambda salt, n: SHA_256.salted(b"pencil", salt, n), "rOprNGfwEbeRWgbNEkqO"
    )
    assert client.first() == RFC_FIRST
    assert client.final(RFC_SERVER_FIRST) == RFC_FINAL
    client.check(RFC_SERVER_FINAL)


def test_the_server_says_what_the_rfc_says() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    stored = credential_of(SHA_256, SHA_256.salted(b"pencil", salt, 4_096), salt, 4_096)
    server = ScramServer(SHA_256, lambda _: stored, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    assert server.on_token(RFC_FIRST).token == RFC_SERVER_FIRST
    answer = server.on_token(RFC_FINAL)
    assert (answer.token, answer.user) == (RFC_SERVER_FINAL, "user")


# Both sides


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512], ids=lambda one: one.name)
@pytest.mark.parametrize("user", ["alice", "a,b=c", "=2C", "Zoë 😀", "a b"])
def test_who_knows_the_password_gets_in(mechanism: ScramMechanism, user: str) -> None:
    users = users_with(user, "pässword ,=", mechanism, iterations=5_000)
    assert log_in(client_of(user, "pässword ,=", mechanism), server_of(users, mechanism)) == user


def test_passwords_are_not_prepared_as_sasl_would() -> None:
    """As Kafka: what SASLprep maps to one text are two passwords."""
    users = users_with("alice", "\u00aa")
    assert log_in(client_of("alice", "\u00aa"), server_of(users)) == "alice"
    with pytest.raises(CredentialsRefused, match="invalid credentials"):
        log_in(client_of("alice", "a"), server_of(users))


@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_wrong_password_and_an_unknown_user_get_the_same_answers_in_the_same_rounds(user: str) -> None:
    users = users_with("alice", "right", iterations=8_192)
    client, server = client_of(user, "wrong"), server_of(users)
    challenge = parse_server_first(server.on_token(client.first()).token)
    assert (len(challenge.salt), challenge.iterations) == (20, 8_192)
    with pytest.raises(CredentialsRefused) as refused:
        server.on_token(
            client.final(f"r={challenge.nonce},s={base64.b64encode(challenge.salt).decode()},i=8192".encode())
        )
    assert str(refused.value) == INVALID


def test_the_salt_of_an_unknown_user_is_the_same_at_all_brokers() -> None:
    one, other = ScramUsers(b"of the cluster"), ScramUsers(b"of the cluster")
    assert one.credential(SHA_256, "bob") == other.credential(SHA_256, "bob")
    salts = {
        users.credential(mechanism, user).salt
        for users in (one, ScramUsers(b"of another"))
        for mechanism in (SHA_256, SHA_512)
        for user in ("bob", "eve")
    }
    assert len(salts) == 8


@pytest.mark.parametrize(
    ("salt", "shape"),
    [
        (b"8ikl1v6jomknbwqhiobl2rdtq", rb"[0-9a-z]{22,26}"),
        (b"\1" * 20, rb"(?s).{20}"),
        (b"\1" * 64, rb"(?s).{64}"),
    ],
    ids=["Kafka", "sparklog", "librdkafka"],
)
def test_the_salt_of_an_unknown_user_looks_as_those_of_most_known_ones(salt: bytes, shape: bytes) -> None:
    users = ScramUsers(b"of the cluster")
    known = ScramCredential(salt, b"", b"", 4_096)
    other = ScramCredential(b"\2" * 30, b"", b"", 4_096)
    users.replace_all({name: {SHA_256.name: known} for name in "ab"} | {"c": {SHA_256.name: other}})
    salts = {users.credential(SHA_256, f"unknown {number}").salt for number in range(200)}
    assert len(salts) == 200
    assert all(re.fullmatch(shape, one) for one in salts)


def test_users_that_are_gone_are_listed() -> None:
    users = ScramUsers()
    both = {name: credential("x", one) for name, one in SCRAM_MECHANISMS.items()}
    assert users.replace_all({"alice": both, "bob": both}) == []
    assert users.replace_all({"alice": {SHA_256.name: credential("y")}, "bob": both}) == [
        ("alice", "SCRAM-SHA-512")
    ]
    assert (users.has("alice", SHA_256.name), users.has("alice", SHA_512.name)) == (True, False)
    assert users.replace_all({"alice": {SHA_256.name: credential("y")}}) == [
        ("bob", "SCRAM-SHA-256"),
        ("bob", "SCRAM-SHA-512"),
    ]


# A client that does not keep the rules


def final_with(change: tuple[str, str]) -> bytes:
    return RFC_FINAL.decode().replace(*change, 1).encode()


@pytest.mark.parametrize(
    "final",
    [
        RFC_FIRST,
        b"",
        b"\xff",
        RFC_FINAL[:-2],
        RFC_FINAL + b"=",
        final_with(("c=biws", "c=eSws")),
        final_with(("$k0", "$k1")),
        final_with(("rOprNG", "")),
        final_with(("p=dHz", "p=eHz")),
        final_with(("p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", "p=dHzb")),
        b"x" * (MESSAGE_BYTES_MAX + 1),
    ],
    ids=range(11),
)
def test_a_final_message_that_is_wrong_anywhere_is_refused(final: bytes) -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    stored = credential_of(SHA_256, SHA_256.salted(b"pencil", salt, 4_096), salt, 4_096)
    server = ScramServer(SHA_256, lambda _: stored, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    server.on_token(RFC_FIRST)
    with pytest.raises(CredentialsRefused) as refused:
        server.on_token(final)
    assert str(refused.value) == INVALID
    with pytest.raises(CredentialsRefused):
        server.on_token(RFC_FINAL)  # there is no second try


def test_an_older_librdkafka_says_its_own_nonce_twice() -> None:
    salted = SHA_256.salted(b"right", SALT, 4_096)
    server = server_of(users_with("alice", "right"))
    offer = server.on_token(b"n,,n=alice,r=own").token.decode()
    unproven = "c=biws,r=own" + parse_server_first(offer.encode()).nonce
    key = client_key(SHA_256, salted)
    signature = SHA_256.keyed(SHA_256.hashed(key), f"n=alice,r=own,{offer},{unproven}".encode())
    proof = base64.b64encode(xor(key, signature)).decode()
    assert server.on_token(f"{unproven},p={proof}".encode()).user == "alice"


def test_a_login_that_is_complete_takes_no_further_token() -> None:
    server = server_of(users_with("alice", "right"))
    client = client_of("alice", "right")
    final = client.final(server.on_token(client.first()).token)
    assert server.on_token(final).user == "alice"
    with pytest.raises(CredentialsRefused):
        server.on_token(final)


def test_another_authorization_id_than_the_user_is_refused() -> None:
    users = users_with("alice", "right")
    assert server_of(users).on_token(b"n,a=alice,n=alice,r=x").user is None
    with pytest.raises(CredentialsRefused) as refused:
        server_of(users).on_token(b"n,a=admin,n=alice,r=x")
    assert str(refused.value) == AUTHORIZATION_ID


@pytest.mark.parametrize(
    ("parse", "token"),
    [
        (parse_client_first, b"p=tls-unique,,n=user,r=x"),
        (parse_client_first, b"n,,n=,r=x"),
        (parse_client_first, b"n,,n=us=er,r=x"),
        (parse_client_first, b"n,,n=user,r="),
        (parse_client_first, b"n,,m=must,n=user,r=x"),
        (parse_client_first, b"n,,n=user,r=x,tokenauth=true"),
        (parse_client_first, b"n,,n=us\0er,r=x"),
        (parse_server_first, b"r=x,s=,i=4096"),
        (parse_server_first, b"r=x,s=QQ==,i=0"),
        (parse_server_first, b"r=x,s=QQ==,i=9999999999"),
        (parse_client_final, b"c=biws,r=x"),
        (parse_client_final, b"c=biw,r=x,p=QQ=="),
        (parse_server_final, b"v=Q"),
        (parse_server_final, b"x=1"),
    ],
)
def test_what_is_no_message_is_malformed_and_not_shown(parse, token) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(MalformedMessage) as malformed:
        parse(token)
    assert "user" not in str(malformed.value)


def test_extensions_are_passed_over() -> None:
    first = parse_client_first(b"n,,n=user,r=x,t=true")
    assert (first.user, first.nonce, first.bare) == ("user", "x", "n=user,r=x,t=true")


# A server that does not keep the rules


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"r=of-another-server,s=QQ==,i=4096", "answers another login"),
        (b"r=of-the-client,s=QQ==,i=4096", "answers another login"),
        (b"r=of-the-client1,s=QQ==,i=4095", "asks for 4095 iterations; 4096 to 1000000 are accepted"),
        (b"r=of-the-client1,s=QQ==,i=1000001", "asks for 1000001 iterations"),
        (b"e=unknown-user", "the broker's first message is wrong"),
    ],
)
def test_a_server_that_answers_wrongly_gets_no_proof(first: bytes, why: str) -> None:
    with pytest.raises(ServerRefused, match=why):
        client_of("alice", "right").final(first)


@pytest.mark.parametrize(
    ("final", "why"),
    [
        (b"v=QQ==", "does not know this user's password"),
        (b"e=invalid-proof", "the broker refuses: 'invalid-proof'"),
        (b"", "the broker's last message is wrong"),
    ],
)
def test_a_server_that_does_not_know_the_password_is_found_out(final: bytes, why: str) -> None:
    client = client_of("alice", "right")
    client.final(server_of(users_with("alice", "right")).on_token(client.first()).token)
    with pytest.raises(ServerRefused, match=why):
        client.check(final)


# What is stored


def test_a_credential_is_stored_in_kafkas_format() -> None:
    stored = credential("pencil", SHA_512, 8_192)
    text = credential_text(stored)
    assert text.startswith(f"salt={base64.b64encode(SALT).decode()},stored_key=")
    assert text.endswith(",iterations=8192")
    assert parse_credential(SHA_512, text) == stored
    assert "key" not in repr(stored)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=QQ==,stored_key=QQ==,server_key=QQ==,iterations=4096",
        credential_text(credential("x")).replace("iterations=4096", "iterations=4095"),
        credential_text(credential("x")).replace("salt=", "salt=*"),
        credential_text(credential("x")).replace("salt=M", "salt="),
        credential_text(credential("x")) + ",more=1",
        credential_text(credential("x", SHA_512)),
    ],
)
def test_what_is_no_credential_is_none(text: str) -> None:
    assert parse_credential(SHA_256, text) is None
