"""A side follows its files: within a second of a look, never to a worse context, with one warning."""

import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest
import trustme

from sparklog.credentials.secret_files import ReadFile
from sparklog.model.errors import ConfigError
from sparklog.model.time import MonotonicMs, WallMs
from sparklog.network.clock import SystemClock
from sparklog.network.tls.from_settings import ListenerTls, client_side, server_side
from sparklog.network.tls.reloading import CHECK_INTERVAL_MS, RETRY_INTERVAL_MS, FollowedContext, Loaded
from sparklog.network.tls.trial import try_handshake
from tests.closed_files import CLOSED
from tests.network.tls.certificates import (
    AUTHORITY,
    OTHER_AUTHORITY,
    TOMORROW,
    YESTERDAY,
    encrypted_pem_of,
    issued,
    of_client,
    of_listener,
    pem_of,
    replace,
    written,
)


class Clock:
    """Goes on when a test says so; the date is the real one."""

    def __init__(self) -> None:
        self.now_ms = 0

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(self.now_ms)

    def wall_ms(self) -> WallMs:
        return SystemClock().wall_ms()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def write_over(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
    Path(path).chmod(CLOSED)


def link_to_another(path: str, content: bytes) -> None:
    """As Kubernetes does: a link to a folder is replaced."""
    file = Path(f"{path}.{len(content)}.{hash(content)}")
    file.write_bytes(content)
    Path(f"{path}.link").symlink_to(file)
    os.replace(f"{path}.link", path)


def serves(side: ListenerTls, leaf: trustme.LeafCert) -> bool:
    """Whether a client that trusts this certificate alone gets in."""
    client = client_side(of_client(truststore_certificates=leaf.cert_chain_pems[0].bytes().decode()))
    try:
        try_handshake(side.context(), client.context(), "localhost")
    except ssl.SSLError:
        return False
    return True


@pytest.mark.parametrize("change", [replace, write_over, link_to_another])
def test_a_changed_file_is_read_at_the_next_look(
    tmp_path: Path, clock: Clock, change: Callable[[str, bytes], None]
) -> None:
    before, after = issued(), issued(not_after=TOMORROW)
    path = written(tmp_path, "keys.pem", pem_of(before))
    side = server_side(of_listener(path), clock)
    former = side.context()
    change(path, pem_of(after))
    clock.now_ms = CHECK_INTERVAL_MS - 1
    assert side.context() is former
    clock.now_ms = CHECK_INTERVAL_MS
    assert (serves(side, after), serves(side, before)) == (True, False)
    assert side.expires_at_ms() == WallMs(int(TOMORROW.timestamp()) * 1000)


def test_without_a_change_the_context_stays(tmp_path: Path, clock: Clock) -> None:
    side = server_side(of_listener(written(tmp_path, "keys.pem", pem_of(issued()))), clock)
    former = side.context()
    for _ in range(5):
        clock.now_ms += CHECK_INTERVAL_MS
        assert side.context() is former


def test_a_client_follows_its_trust_store(tmp_path: Path, clock: Clock) -> None:
    leaf = issued(authority=OTHER_AUTHORITY)
    server = server_side(of_listener(written(tmp_path, "keys.pem", pem_of(leaf))))
    path = written(tmp_path, "trust.pem", AUTHORITY.cert_pem.bytes())
    client = client_side(of_client(truststore_location=path), clock)
    with pytest.raises(ssl.SSLError):
        try_handshake(server.context(), client.context(), "localhost")
    replace(path, OTHER_AUTHORITY.cert_pem.bytes())
    clock.now_ms += CHECK_INTERVAL_MS
    try_handshake(server.context(), client.context(), "localhost")


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        pem_of(issued())[:-30],
        issued().private_key_pem.bytes() + issued().cert_chain_pems[0].bytes(),
        pem_of(issued(not_after=YESTERDAY)),
        encrypted_pem_of(issued()),
        None,
    ],
    ids=["empty", "half-written", "a key of another", "expired", "encrypted", "away"],
)
def test_a_file_that_does_not_work_leaves_the_former_and_warns_once(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, broken: bytes | None
) -> None:
    before, after = issued(), issued()
    path = written(tmp_path, "keys.pem", pem_of(before))
    side = server_side(of_listener(path), clock)
    if broken is None:
        os.unlink(path)
    else:
        write_over(path, broken)
    with caplog.at_level(logging.INFO):
        for _ in range(20):
            clock.now_ms += CHECK_INTERVAL_MS
            assert serves(side, before)
        (warning,) = caplog.messages
        assert warning.startswith("ssl.keystore.location")
        assert path in warning
        assert warning.endswith("; what was read before is used until this is mended")
        caplog.clear()
        write_over(path, pem_of(after))
        clock.now_ms += CHECK_INTERVAL_MS
        assert serves(side, after)
        assert caplog.messages == [f"certificates and keys are read again from {path}"]


def test_what_failed_for_another_reason_than_the_file_is_tried_again_without_a_change(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = issued(), issued()
    path = written(tmp_path, "keys.pem", pem_of(before))
    settings = of_listener(path, key_password="${env:PLANTED}")
    side = server_side(settings, clock)
    write_over(path, encrypted_pem_of(after, "renewed"))
    clock.now_ms += CHECK_INTERVAL_MS
    assert serves(side, before)
    monkeypatch.setenv("PLANTED", "renewed")
    clock.now_ms += CHECK_INTERVAL_MS
    assert serves(side, before)
    clock.now_ms += RETRY_INTERVAL_MS
    assert serves(side, after)


def test_a_process_that_can_open_no_more_files_goes_on_and_tries_again(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before, after = issued(), issued()
    path = written(tmp_path, "keys.pem", pem_of(before))
    side = server_side(of_listener(path), clock)
    replace(path, pem_of(after))
    clock.now_ms += CHECK_INTERVAL_MS

    def none_left(*_: object) -> int:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as full:
        full.setattr("os.memfd_create", none_left)
        former = side.context()
    assert "TLS cannot be set up now: [Errno 24] Too many open files; what was read before" in caplog.text
    assert side.context() is former
    clock.now_ms += RETRY_INTERVAL_MS
    assert serves(side, after)


def test_a_password_in_a_file_of_its_own_may_change_after_the_key(tmp_path: Path, clock: Clock) -> None:
    before, after = issued(), issued()
    path = written(tmp_path, "keys.pem", encrypted_pem_of(before, "first"))
    passwords = written(tmp_path, "passwords.properties", b"key=first")
    side = server_side(of_listener(path, key_password=f"${{file:{passwords}:key}}"), clock)
    replace(path, encrypted_pem_of(after, "second"))
    clock.now_ms += CHECK_INTERVAL_MS
    assert serves(side, before)
    replace(passwords, b"key=second")
    clock.now_ms += CHECK_INTERVAL_MS
    assert serves(side, after)


@pytest.mark.parametrize("side", [server_side, client_side])
def test_a_key_in_a_file_that_others_may_open_serves_with_one_warning(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, side: Callable[..., object]
) -> None:
    """One for a process, whose listeners and connectors share the file."""
    path = written(tmp_path, "keys.pem", pem_of(issued()))
    settings = of_listener(path)
    followed = server_side(settings, clock)
    assert caplog.text == ""
    os.chmod(path, 0o644)
    clock.now_ms += CHECK_INTERVAL_MS
    followed.context()
    for _ in range(3):
        side(settings, clock)
    (warning,) = (record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)
    assert warning.startswith(f"ssl.keystore.location: others may open {path}, as its mode is 0644; close")


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path, clock: Clock) -> None:
    path = written(tmp_path, "file", b"first")
    seen: list[bytes] = []

    def load(read: ReadFile) -> Loaded:
        seen.append(read(path).content)
        if len(seen) == 1:
            write_over(path, b"second")
        return Loaded(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), None)

    followed = FollowedContext(load, clock)
    clock.now_ms += CHECK_INTERVAL_MS
    followed.loaded()
    clock.now_ms += CHECK_INTERVAL_MS
    followed.loaded()
    assert seen == [b"first", b"second"]


def test_a_thread_that_finds_another_one_reading_goes_on_with_the_former(
    tmp_path: Path, clock: Clock
) -> None:
    path = written(tmp_path, "file", b"first")
    reads, goes_on = Event(), Event()
    contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(2)]

    def load(read: ReadFile) -> Loaded:
        if read(path).content == b"first":
            return Loaded(contexts[0], None)
        reads.set()
        assert goes_on.wait(60)
        return Loaded(contexts[1], None)

    followed = FollowedContext(load, clock)
    write_over(path, b"second")
    clock.now_ms += CHECK_INTERVAL_MS
    thread = Thread(target=followed.loaded)
    thread.start()
    assert reads.wait(60)
    clock.now_ms += CHECK_INTERVAL_MS
    assert followed.loaded().context is contexts[0]
    goes_on.set()
    thread.join()
    assert followed.loaded().context is contexts[1]


def test_a_file_that_is_overwritten_with_other_bytes_leaves_the_former_context(
    tmp_path: Path, clock: Clock
) -> None:
    path = written(tmp_path, "broker.pem", pem_of(issued()))
    side = server_side(of_listener(path), clock)
    former = side.context()
    write_over(path, pem_of(issued()).replace(b"CERTIFICATE-----\n", b"CERTIFICATE-----\n\xff\xfe", 1))
    clock.now_ms += CHECK_INTERVAL_MS
    assert side.context() is former


def test_a_location_that_no_file_has_is_an_error_of_the_settings() -> None:
    with pytest.raises(ConfigError, match="null"):
        server_side(of_listener("keys\0"))
