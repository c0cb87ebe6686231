"""Cipher suites by Java's names, which are IANA's, as ``ssl.cipher.suites`` lists them.

OpenSSL has other names for those of TLS 1.2. Python cannot choose among those of TLS 1.3 (they are always all
three), so that a list has all of them, or none: then TLS 1.2 is the newest version that is spoken.
"""

import difflib
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from sparklog.model.errors import ConfigError

SUITES_OF_TLS_1_3: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)

OPENSSL_NAMES: Final = MappingProxyType(
    {
        f"TLS_{exchange.replace('-', '_')}_WITH_{java}": f"{exchange}-{openssl}"
        for exchanges, java, openssl in (
            (("ECDHE-ECDSA", "ECDHE-RSA", "DHE-RSA"), "AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
            (("ECDHE-ECDSA", "ECDHE-RSA", "DHE-RSA"), "AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
            (("ECDHE-ECDSA", "ECDHE-RSA", "DHE-RSA"), "CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
            (("ECDHE-ECDSA", "ECDHE-RSA", "DHE-RSA"), "AES_128_CBC_SHA256", "AES128-SHA256"),
            (("ECDHE-ECDSA", "ECDHE-RSA"), "AES_256_CBC_SHA384", "AES256-SHA384"),
            (("DHE-RSA",), "AES_256_CBC_SHA256", "AES256-SHA256"),
            (("ECDHE-ECDSA", "ECDHE-RSA", "DHE-RSA"), "AES_128_CBC_SHA", "AES128-SHA"),
            (("ECDHE-ECDSA", "ECDHE-RSA", "DHE-RSA"), "AES_256_CBC_SHA", "AES256-SHA"),
        )
        for exchange in exchanges
    }
    | {
        "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
        "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
        "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
        "TLS_RSA_WITH_AES_256_CBC_SHA256": "AES256-SHA256",
        "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
        "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    }
)
"""OpenSSL's name of each suite of TLS 1.2 that OpenSSL still serves, by its name in Java."""

_SIGNAL: Final = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
"""Java lists it among the suites; it asks for no cipher, and OpenSSL always sends it."""

_TLS_1_2: Final = "TLSv1.2"
_TLS_1_3: Final = "TLSv1.3"


def chosen_suites(
    setting: str, names: Sequence[str], versions: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """OpenSSL's names for TLS 1.2 (none: OpenSSL's choice), and which of ``versions`` the list leaves.

    ``setting`` is the list's name, for error texts.
    """
    if not names:
        return (), tuple(versions)
    unknown = [one for one in names if one not in {*OPENSSL_NAMES, *SUITES_OF_TLS_1_3, _SIGNAL}]
    if unknown:
        raise ConfigError(f"{setting}: {unknown[0]!r} is no cipher suite that is served{_hint(unknown[0])}")
    of_tls_1_3 = [one for one in SUITES_OF_TLS_1_3 if one in names]
    if of_tls_1_3 and len(of_tls_1_3) < len(SUITES_OF_TLS_1_3):
        missing = [one for one in SUITES_OF_TLS_1_3 if one not in names]
        raise ConfigError(
            f"{setting}: of TLS 1.3 it names {', '.join(of_tls_1_3)} alone, and {', '.join(missing)} would "
            "be served too; name all three, or none, which leaves TLS 1.2"
        )
    of_tls_1_2 = tuple(OPENSSL_NAMES[one] for one in names if one in OPENSSL_NAMES)
    able = {_TLS_1_2} if of_tls_1_2 else set()
    able |= {_TLS_1_3} if of_tls_1_3 else set()
    left = tuple(one for one in versions if one in able)
    if not left:
        raise ConfigError(
            f"{setting}: it has no cipher suite of {' or '.join(versions)}, so that nobody could connect; "
            "add some, or change ssl.enabled.protocols"
        )
    return of_tls_1_2, left


def _hint(name: str) -> str:
    near = difflib.get_close_matches(name, [*OPENSSL_NAMES, *SUITES_OF_TLS_1_3], n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else "; write the names that Java has for them"
