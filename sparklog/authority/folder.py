"""The folder that a secured cluster starts from: an authority, certificates, and files of properties.

    ca.pem              the authority's certificate, which every client gets
    ca-key.pem          its key
    broker.pem          key and certificates of brokers and of the driver
    admin.pem           those of an administrator, for the brokers' listener
    secrets.properties  passwords, to which the others refer
    server.properties, admin.properties, client.properties

The folder and every file but ``ca.pem`` and ``client.properties`` are closed to others. A file appears with
all that it has, and is never written over: a reader finds the old one or the new one.
"""

import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from sparklog.authority.folder_texts import (
    ADMIN,
    ADMIN_FILE,
    ADMIN_PROPERTIES_FILE,
    AUTHORITY_FILE,
    AUTHORITY_KEY_FILE,
    BROKER,
    BROKER_FILE,
    CLIENT_PROPERTIES_FILE,
    SECRETS_FILE,
    SERVER_FILE,
    admin_properties,
    check_folder,
    client_properties,
    secrets_properties,
    server_properties,
)
from sparklog.authority.issuing import Issued, check_host, issue, new_authority
from sparklog.model.errors import ConfigError, SparklogError

CERTIFICATE_FILES: Final = (AUTHORITY_FILE, BROKER_FILE, ADMIN_FILE)
THIS_MACHINE: Final = ("localhost", "127.0.0.1")
"""Brokers that `sparklog start` runs are dialled so."""

_FOLDER_MODE: Final = 0o700
_CLOSED: Final = 0o600
_FOR_ALL: Final = 0o644
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_OPEN_FILES: Final = (AUTHORITY_FILE, CLIENT_PROPERTIES_FILE)
_AUTHORITY_NAME: Final = "sparklog authority"
_PASSWORD_BYTES: Final = 32


def make_folder(folder: Path, hosts: Sequence[str], now: datetime) -> None:
    """Make the folder and its files. ``hosts``: names and addresses by which brokers and driver are dialled.

    Raises SparklogError if one of its files is there already, or the folder is not ours alone; ConfigError
    for a host or a path that cannot be. Nothing is left of a folder that could not be made.
    """
    folder = folder.absolute()
    check_folder(folder)
    for host in hosts:
        check_host(host)
    authority = new_authority(_AUTHORITY_NAME, now)
    names = tuple(dict.fromkeys((*hosts, *THIS_MACHINE)))
    texts = {
        AUTHORITY_KEY_FILE: authority.key,
        AUTHORITY_FILE: authority.certificate,
        BROKER_FILE: _key_and_chain(issue(authority, BROKER, names, now), authority),
        ADMIN_FILE: _key_and_chain(issue(authority, ADMIN, (), now), authority),
        SECRETS_FILE: secrets_properties(*(secrets.token_urlsafe(_PASSWORD_BYTES) for _ in range(2))),
        SERVER_FILE: server_properties(folder),
        ADMIN_PROPERTIES_FILE: admin_properties(folder),
        CLIENT_PROPERTIES_FILE: client_properties(),
    }
    try:
        _close_folder(folder, texts)
        _write_new(folder, texts)
    except OSError as error:
        raise _cannot_write(folder, error) from None


def renew_folder(folder: Path, hosts: Mapping[str, Sequence[str]], now: datetime) -> None:
    """Replace the certificates of brokers and administrator, keys included, under the same authority.

    ``hosts``: by file, those that its certificate names. Raises ConfigError if the authority cannot issue;
    nothing has changed then.
    """
    authority = Issued(_text_of(folder, AUTHORITY_FILE), _text_of(folder, AUTHORITY_KEY_FILE))
    for host in (host for named in hosts.values() for host in named):
        check_host(host)
    texts = {
        BROKER_FILE: _key_and_chain(issue(authority, BROKER, hosts[BROKER_FILE], now), authority),
        ADMIN_FILE: _key_and_chain(issue(authority, ADMIN, hosts[ADMIN_FILE], now), authority),
    }
    try:
        for name, text in texts.items():
            new = folder / f"{name}.new"
            new.unlink(missing_ok=True)
            _write(new, text, _CLOSED)
            os.replace(new, folder / name)
        _sync_folder(folder)
    except OSError as error:
        raise _cannot_write(folder, error) from None


def _close_folder(folder: Path, names: Mapping[str, str]) -> None:
    try:
        folder.mkdir(mode=_FOLDER_MODE, parents=True)
    except FileExistsError:
        there = [name for name in names if os.path.lexists(folder / name)]
        if there:
            what = "an authority" if there[0] in (AUTHORITY_FILE, AUTHORITY_KEY_FILE) else there[0]
            raise SparklogError(
                f"{folder} has {what} already, and nothing is written over; see it with sparklog security "
                "show, replace its certificates with sparklog security renew, or choose another folder"
            ) from None
        if stat.S_IMODE(folder.stat().st_mode) & _OTHERS and any(folder.iterdir()):
            raise SparklogError(
                f"{folder} has files and is open to others, whom a folder of keys would lock out; choose a "
                "new folder, or close this one with chmod 700"
            ) from None
    folder.chmod(_FOLDER_MODE)


def _write_new(folder: Path, texts: Mapping[str, str]) -> None:
    written: list[Path] = []
    try:
        for name, text in texts.items():
            path = folder / name
            _write(path, text, _FOR_ALL if name in _OPEN_FILES else _CLOSED)
            written.append(path)
        _sync_folder(folder)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def _write(path: Path, text: str, mode: int) -> None:
    """A new file, on the disk when this returns; FileExistsError if it is there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, mode)  # whatever the umask is
            file.write(text)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _key_and_chain(issued: Issued, authority: Issued) -> str:
    return issued.key + issued.certificate + authority.certificate


def _text_of(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(
            f"{folder / name} cannot be read: {reason}; name a folder that sparklog security init has made"
        ) from None


def _cannot_write(folder: Path, error: OSError) -> SparklogError:
    return SparklogError(f"{error.filename or folder}: {error.strerror}; choose a folder that you may write")
