"""Certificates for tests, from an authority that nobody else knows."""

import os
from pathlib import Path
from typing import Any

import trustme

from tests.closed_files import CLOSED

LOOPBACK = ("127.0.0.1", "localhost")


class Authority:
    """Issues certificates into files below ``root``; ``ca.pem`` there has its own."""

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        self.root = root
        self._ca = trustme.CA()
        self.file = root / "ca.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def issue(self, name: str, *hosts: str, **terms: Any) -> Path:
        """Key and certificate in one PEM file, replaced at once if it is there. ``terms``: as trustme's."""
        issued = self._ca.issue_cert(*(hosts or LOOPBACK), common_name=name, **terms)
        path, beside = self.root / f"{name}.pem", self.root / f"{name}.new"
        issued.private_key_and_cert_chain_pem.write_to_path(str(beside))
        beside.chmod(CLOSED)
        os.replace(beside, path)
        return path

    def settings(self, key_store: Path, **more: str) -> dict[str, str]:
        """``ssl.*`` of brokers or clients; ``more``: without ``ssl.``, with ``_`` for each dot."""
        return {
            "ssl.keystore.location": str(key_store),
            "ssl.truststore.location": str(self.file),
            **{f"ssl.{name.replace('_', '.')}": text for name, text in more.items()},
        }
