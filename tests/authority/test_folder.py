"""The folder of a secured cluster: what its files say, who may read them, and what is never written over."""

import os
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sparklog.authority.folder import make_folder, renew_folder
from sparklog.client.security.connecting import connector_of
from sparklog.credentials.secret_files import read_file
from sparklog.model.errors import ConfigError, SparklogError
from sparklog.model.settings.config import BrokerConfig, check_broker_settings
from sparklog.model.settings.settings_text import parse_properties
from sparklog.network.listener_tls import check_certificates, own_principal
from sparklog.network.tls.certificate_facts import facts_of
from sparklog.network.tls.pem import certificates_of, private_key_of
from sparklog.network.tls.stores import Identity

HOSTS = {"broker.pem": ("host-1",), "admin.pem": ()}


def utc_now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "security"
    make_folder(made, ["host-1", "10.0.0.7"], utc_now())
    return made


def properties(path: Path) -> dict[str, str]:
    return parse_properties(path.read_text())


def facts(path: Path):
    return facts_of(Identity("", certificates_of(path.read_text()), ""))


def test_everything_but_what_users_get_is_closed_to_others(folder: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {
        "ca-key.pem": 0o600, "ca.pem": 0o644, "broker.pem": 0o600, "admin.pem": 0o600,
        "secrets.properties": 0o600, "server.properties": 0o600, "admin.properties": 0o600,
        "client.properties": 0o644,
    }  # fmt: skip
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o277)
    try:
        make_folder(tmp_path / "security", ["a"], utc_now())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "security" / "ca.pem").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "security" / "broker.pem").stat().st_mode) == 0o600


def test_no_secret_is_in_a_file_that_users_get_or_that_names_it(folder: Path) -> None:
    passwords = properties(folder / "secrets.properties")
    assert passwords.keys() == {"admin", "zookeeper"}
    assert min(map(len, passwords.values())) >= 40
    for path in folder.iterdir():
        text = path.read_text()
        for password in passwords.values():
            assert (password in text) == (path.name == "secrets.properties"), path.name
        assert ("PRIVATE KEY" in text) == (path.name in ("ca-key.pem", "broker.pem", "admin.pem")), path.name


def test_two_folders_share_no_secret(tmp_path: Path, folder: Path) -> None:
    make_folder(tmp_path / "other", ["host-1"], utc_now())
    for name in ("secrets.properties", "ca-key.pem", "ca.pem"):
        assert (tmp_path / "other" / name).read_text() != (folder / name).read_text()


def test_the_settings_of_brokers_work_without_a_warning(folder: Path) -> None:
    settings = properties(folder / "server.properties")
    assert check_broker_settings(settings).warnings == ()
    config = BrokerConfig.parse(settings)
    hosts = {"CLIENTS": ("host-1", "10.0.0.7"), "BROKERS": ("localhost", "127.0.0.1")}
    assert check_certificates(config, hosts, int(utc_now().timestamp() * 1_000)) == []
    assert own_principal(config) == "User:CN=broker"
    assert own_principal(config) in settings["super.users"].split(";")


def test_the_properties_of_administrator_and_users_are_a_clients(folder: Path) -> None:
    connector_of(properties(folder / "admin.properties"))
    text = (folder / "client.properties").read_text().replace("/PATH/TO", str(folder))
    completed = parse_properties(text.replace('"NAME"', '"alice"').replace('"PASSWORD"', '"of-alice"'))
    assert 'username="alice" password="of-alice"' in completed["sasl.jaas.config"]
    connector_of(completed)


def test_an_authority_is_never_written_over(folder: Path) -> None:
    before = (folder / "ca-key.pem").read_text()
    with pytest.raises(SparklogError, match="has an authority already, and nothing is written over"):
        make_folder(folder, ["host-1"], utc_now())
    (folder / "ca.pem").unlink()
    with pytest.raises(SparklogError, match="has an authority already"):
        make_folder(folder, ["host-1"], utc_now())
    assert (folder / "ca-key.pem").read_text() == before


def test_files_of_that_name_stay_and_nothing_is_left_beside_them(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("mine")
    tmp_path.chmod(0o700)
    with pytest.raises(SparklogError, match=r"has server\.properties already"):
        make_folder(tmp_path, ["a"], utc_now())
    assert [path.name for path in tmp_path.iterdir()] == ["server.properties"]


def test_a_folder_that_others_use_is_not_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    tmp_path.chmod(0o755)
    with pytest.raises(SparklogError, match="has files and is open to others"):
        make_folder(tmp_path, ["a"], utc_now())
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@pytest.mark.parametrize("name", ["a:b", "a}b", 'a"b', "a\\b", "a\nb", "a#b", "a "])
def test_a_path_that_properties_cannot_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be named in properties files"):
        make_folder(tmp_path / name, ["a"], utc_now())
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_host_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'host:9092' is no name"):
        make_folder(tmp_path / "security", ["a", "host:9092"], utc_now())
    assert not (tmp_path / "security").exists()


def test_renewed_certificates_are_other_ones_of_the_same_authority(folder: Path) -> None:
    before = {path.name: path.read_text() for path in folder.iterdir()}
    renew_folder(folder, {"broker.pem": ("host-1", "host-2"), "admin.pem": ()}, utc_now())
    after = {path.name: path.read_text() for path in folder.iterdir()}
    assert {name for name in after if after[name] != before[name]} == {"broker.pem", "admin.pem"}
    assert after.keys() == before.keys()
    assert facts(folder / "broker.pem").hosts == ("host-1", "host-2")
    assert facts(folder / "broker.pem").owner == "CN=broker"
    assert certificates_of(after["broker.pem"])[1] == certificates_of(before["ca.pem"])[0]
    assert stat.S_IMODE((folder / "broker.pem").stat().st_mode) == 0o600
    config = BrokerConfig.parse(properties(folder / "server.properties"))
    assert check_certificates(config, {"BROKERS": ("host-2",)}, int(utc_now().timestamp() * 1_000)) == []


def test_a_reader_never_sees_half_a_file(folder: Path) -> None:
    """While another renews ten times, every read has one key and two certificates."""
    has_ended = threading.Event()

    def renew() -> None:
        for _ in range(10):
            renew_folder(folder, HOSTS, utc_now())
        has_ended.set()

    renewing = threading.Thread(target=renew)
    renewing.start()
    seen = set()
    while not has_ended.is_set():
        text = read_file(str(folder / "broker.pem")).content.decode()
        private_key_of(text)
        assert len(certificates_of(text)) == 2
        seen.add(text)
    renewing.join()
    assert len(seen) > 1


def test_a_renewal_that_was_cut_off_is_done_by_the_next(folder: Path) -> None:
    (folder / "broker.pem.new").write_text("half")
    renew_folder(folder, HOSTS, utc_now())
    assert not (folder / "broker.pem.new").exists()
    assert facts(folder / "broker.pem").hosts == ("host-1",)


def test_an_authority_that_has_expired_changes_nothing(folder: Path) -> None:
    before = (folder / "broker.pem").read_text()
    with pytest.raises(ConfigError, match="has expired"):
        renew_folder(folder, HOSTS, utc_now() + timedelta(days=4_000))
    assert (folder / "broker.pem").read_text() == before


def test_a_folder_without_an_authority_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ca\.pem cannot be read: No such file"):
        renew_folder(tmp_path, HOSTS, utc_now())
