"""The error of a TLS connection that one side refuses for good."""


class TlsRefused(ConnectionError):  # noqa: N818 (it states a fact)
    """One side refuses the other, and will refuse it again: another attempt is of no use until certificates
    or settings have changed.
    """
