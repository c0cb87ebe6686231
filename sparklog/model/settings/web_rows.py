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

WEB_SETTINGS: Final = (
    Setting(WEB_PORT, "int", -1,
            "Port of the page on the driver's host (docs/web-page.md); 0 takes a free one, -1 serves none. "
            "Sparklog's own, as all web.*.", -1, 65_535),
    Setting(WEB_HOST, "string", "127.0.0.1",
            "Address at which the page listens. Another one than the loopback needs web.open=true."),
    Setting(WEB_OPEN, "bool", False, "Serve the page to everybody who reaches web.host."),
    Setting(WEB_ALLOWED_HOSTS, "list", (), "Names by which browsers may call the page, beside web.host.",
            pattern=r"[A-Za-z0-9_.:\[\]-]+"),
    Setting(WEB_RECORDS, "bool", True, "Whether the page shows records."),
    Setting(WEB_LISTENER, "string", "", "Listener through which the page asks brokers; empty for the first."),
)  # fmt: skip


def without_web(settings: Mapping[str, str]) -> dict[str, str]:
    """What executors get: the page and its secrets are the driver's own."""
    return {name: value for name, value in settings.items() if not name.startswith(WEB_PREFIX)}
