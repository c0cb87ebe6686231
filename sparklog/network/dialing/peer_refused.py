"""The errors of a connection that one side refuses for good: by TLS, or by its login.

Another attempt is of no use until certificates, users or settings have changed.
"""


class PeerRefused(ConnectionError):  # noqa: N818 (it states a fact)
    """One side refuses the other, and will refuse it again."""


class TlsRefused(PeerRefused):
    """TLS is refused."""


class LoginRefused(PeerRefused):
    """The login is refused, or the broker that is to know the password does not."""
