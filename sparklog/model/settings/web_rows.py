"""The settings of the page that a driver serves (docs/web-page.md)."""

from collections.abc import Mapping
from typing import Final

from sparklog.model.settings.setting import Setting

WEB_PORT: Final = "web.port"
WEB_HOST: Final = "web.host"
WEB_OPEN: Final = "web.open"
WEB_ALLOWED_HOSTS: Final = "web.allowed.hosts"
WEB_RECORDS: Final = "web.records"
WEB_LISTENER: Final = "web.listener"
WEB_PREFIX: Final = "web."
WEB_TLS_PREFIX: Final = "web.ssl."
PAGE: Final = "web"
"""What the page is called among the listeners that have settings of TLS."""

WEB_SETTINGS: Final = (
    Setting(WEB_PORT, "int", -1,
            "Port of the page on the driver's host (docs/web-page.md); 0 takes a free one, -1 serves none. "
            "Sparklog's own, as all web.*.", -1, 65_535),
    Setting(WEB_HOST, "string", "127.0.0.1",
            "Address at which the page listens. Another one than the loopback needs TLS (web.ssl.*) and a "
            "listener with logins, or web.open=true."),
    Setting(WEB_OPEN, "bool", False, "Serve the page to everybody who reaches web.host."),
    Setting(WEB_ALLOWED_HOSTS, "list", (), "Names by which browsers may call the page, beside web.host.",
            pattern=r"[A-Za-z0-9_.:\[\]-]+"),
    Setting(WEB_RECORDS, "bool", True, "Whether the page shows records."),
    Setting(WEB_LISTENER, "string", "",
            "Listener through which the page asks brokers; empty for the first. Where clients log in there, "
            "so do users of the page."),
    Setting("web.ssl.keystore.location", "string", "",
            "File with the page's certificates and private key; with it the page speaks TLS."),
    Setting("web.ssl.keystore.password", "string", "", "Password of a PKCS12 key store, as a reference."),
    Setting("web.ssl.keystore.key", "string", "", "The private key itself, PEM, as a reference."),
    Setting("web.ssl.keystore.certificate.chain", "string", "",
            "The certificates of web.ssl.keystore.key, PEM, the page's first."),
    Setting("web.ssl.key.password", "string", "", "Password of an encrypted key in PEM, as a reference."),
)  # fmt: skip


def tls_of_page(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings ``web.ssl.*`` that are given, as those of the listener PAGE; none: no TLS."""
    return {
        f"listener.name.{PAGE}.{name.removeprefix(WEB_PREFIX)}": text
        for name, text in settings.items()
        if name.startswith(WEB_TLS_PREFIX) and text
    }


def without_web(settings: Mapping[str, str]) -> dict[str, str]:
    """What executors get: the page and its secrets are the driver's own."""
    return {name: value for name, value in settings.items() if not name.startswith(WEB_PREFIX)}
