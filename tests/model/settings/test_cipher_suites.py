"""Cipher suites by Java's names, and the versions that a list of them leaves."""

import ssl

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.cipher_suites import OPENSSL_NAMES, SUITES_OF_TLS_1_3, chosen_suites

BOTH = ("TLSv1.2", "TLSv1.3")
ECDHE = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


def test_each_name_of_openssl_is_a_suite_that_it_has() -> None:
    """Python describes the suites of a context by their names."""
    for name in OPENSSL_NAMES.values():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_ciphers(name)
        of_tls_1_2 = [one["name"] for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"]
        assert of_tls_1_2 == [name]


@pytest.mark.parametrize(
    ("names", "versions", "chosen"),
    [
        ((), BOTH, ((), BOTH)),
        ((ECDHE,), BOTH, (("ECDHE-RSA-AES256-GCM-SHA384",), ("TLSv1.2",))),
        (SUITES_OF_TLS_1_3, BOTH, ((), ("TLSv1.3",))),
        ((*SUITES_OF_TLS_1_3, ECDHE), BOTH, (("ECDHE-RSA-AES256-GCM-SHA384",), BOTH)),
        ((*SUITES_OF_TLS_1_3, ECDHE), ("TLSv1.3",), (("ECDHE-RSA-AES256-GCM-SHA384",), ("TLSv1.3",))),
        (
            (ECDHE, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"),
            BOTH,
            (("ECDHE-RSA-AES256-GCM-SHA384",), ("TLSv1.2",)),
        ),
    ],
)
def test_a_list_leaves_the_versions_that_it_has_suites_of(names, versions, chosen) -> None:
    assert chosen_suites("ssl.cipher.suites=x", names, versions) == chosen


@pytest.mark.parametrize(
    ("names", "versions", "problem"),
    [
        (
            ("TLS_AES_256_GCM_SHA384",),
            BOTH,
            "of TLS 1.3 it names TLS_AES_256_GCM_SHA384 alone, and TLS_AES_128",
        ),
        ((ECDHE,), ("TLSv1.3",), "it has no cipher suite of TLSv1.3, so that nobody could connect; add some"),
        (SUITES_OF_TLS_1_3, ("TLSv1.2",), "it has no cipher suite of TLSv1.2"),
        (("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA38",), BOTH, f"did you mean {ECDHE}?"),
        (("SSL_RSA_WITH_RC4_128_MD5",), BOTH, "'SSL_RSA_WITH_RC4_128_MD5' is no cipher suite that is served"),
        (("TLS_EMPTY_RENEGOTIATION_INFO_SCSV",), BOTH, "it has no cipher suite of TLSv1.2 or TLSv1.3"),
    ],
)
def test_a_list_that_cannot_be_kept_is_refused(names, versions, problem) -> None:
    with pytest.raises(ConfigError) as refused:
        chosen_suites("ssl.cipher.suites=x", names, versions)
    assert str(refused.value).startswith("ssl.cipher.suites=x: ")
    assert problem in str(refused.value)
