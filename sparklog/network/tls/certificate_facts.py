"""What an administrator wants to know of a certificate: its owner, its dates, and the hosts it is for."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sparklog.model.errors import ConfigError
from sparklog.model.time import WallMs
from sparklog.network.tls.certificate_names import subject_of
from sparklog.network.tls.stores import Identity

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """``hosts``: names and IP addresses that it is for; ``alternative_names``: those that it lists, without
    the common name.
    """

    owner: str
    valid_from_ms: WallMs
    expires_at_ms: WallMs
    hosts: tuple[str, ...]
    alternative_names: tuple[str, ...]

    def time_problem(self, now_ms: WallMs) -> str | None:
        """Why nobody accepts it now; None if its dates are right."""
        if now_ms > self.expires_at_ms:
            return f"the certificate of {self.owner} has expired on {date(self.expires_at_ms)}; renew it"
        if now_ms < self.valid_from_ms:
            return (
                f"the certificate of {self.owner} is not valid before {date(self.valid_from_ms)}; wait, or "
                f"set this machine's clock, which says {date(now_ms)}"
            )
        return None


def facts_of(identity: Identity) -> CertificateFacts:
    """The facts of a side's own certificate; ConfigError if that is damaged."""
    # cryptography is heavy, and a client without a key store does without it
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import (
        DuplicateExtension,
        InvalidVersion,
        UnsupportedGeneralNameType,
        load_pem_x509_certificate,
    )

    try:
        found = load_pem_x509_certificate(identity.chain[0].encode("ascii"))
        listed = _alternative_names(found)
        return CertificateFacts(
            subject_of(found.public_bytes(Encoding.DER)),
            _ms(found.not_valid_before_utc),
            _ms(found.not_valid_after_utc),
            tuple(_common_names(found)) if listed is None else listed,
            listed or (),
        )
    except (ValueError, DuplicateExtension, InvalidVersion, UnsupportedGeneralNameType) as error:
        raise ConfigError(f"{identity.place}: its certificate is damaged: {error}") from None


def date(time_ms: WallMs) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _ms(time: datetime) -> WallMs:
    return WallMs(int(time.timestamp()) * 1000)


def _alternative_names(certificate: "Certificate") -> tuple[str, ...] | None:
    """None without the extension: only then clients take the subject's common name for a host's."""
    # as above
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    return (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))


def _common_names(certificate: "Certificate") -> Iterator[str]:
    # as above
    from cryptography.x509 import NameOID

    for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
        yield str(one.value)
