"""Both sides of TLS for tests: contexts from certificates that are made once, and principals from names."""

import functools
import ssl
from dataclasses import dataclass, field

import trustme
from cryptography import x509
from cryptography.x509.oid import NameOID


@functools.cache
def authority():
    return trustme.CA()


@functools.cache
def stranger():
    """An authority that nobody trusts."""
    return trustme.CA(organization_name="Strangers")


@functools.cache
def broker_certificate():
    return authority().issue_cert("localhost", "127.0.0.1", "::1")


@functools.cache
def client_certificate(name="alice"):
    return authority().issue_cert(f"{name}@example.org", common_name=name)


@dataclass
class ServerSide:
    """``TlsServer`` with one context."""

    certificate: object = field(default_factory=broker_certificate)
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    greatest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    refused: tuple = ()

    def __post_init__(self):
        self.served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.certificate.configure_cert(self.served)
        authority().configure_trust(self.served)
        self.served.verify_mode = self.client_auth
        self.served.maximum_version = self.greatest

    def context(self):
        return self.served

    def principal_of(self, certificate):
        if certificate is None:
            return "User:ANONYMOUS"
        subject = x509.load_der_x509_certificate(certificate).subject
        name = subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        if name in self.refused:
            raise ValueError(f"{name} is refused")
        return f"User:{name}"


@dataclass
class ClientSide:
    """``TlsClient`` with one context."""

    trusted: object = field(default_factory=authority)
    certificate: object = None
    checks_host_names: bool = True
    greatest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3

    def __post_init__(self):
        self.used = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.trusted.configure_trust(self.used)
        self.used.check_hostname = self.checks_host_names
        self.used.maximum_version = self.greatest
        if self.certificate is not None:
            self.certificate.configure_cert(self.used)

    def context(self):
        return self.used
