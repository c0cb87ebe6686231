"""Settings of access rules: whether there is an authorizer, and whom it lets do everything."""

from collections.abc import Mapping
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.settings.setting import Setting, Value

AUTHORIZER: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
ALLOWS_WITHOUT_RULES: Final = "allow.everyone.if.no.acl.found"

AUTHORIZERS: Final = (
    "kafka.security.authorizer.AclAuthorizer",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
)
"""Names that Kafka's configurations have. Both mean sparklog's."""

ACCESS_SETTINGS: Final = (
    Setting(
        AUTHORIZER,
        "string",
        "",
        f"Whether requests need rights: {' or '.join(f'`{one}`' for one in AUTHORIZERS)}, which are the same "
        "here. Empty: everybody may do everything.",
        choices=("", *AUTHORIZERS),
    ),
    Setting(
        SUPER_USERS,
        "string",
        "",
        "Principals that may do everything, such as User:admin; a semicolon between two.",
    ),
    Setting(ALLOWS_WITHOUT_RULES, "bool", False, "Whether everybody may do what no access rule is about."),
)


def check_access(values: Mapping[str, Value]) -> None:
    """Raises ConfigError for settings of access rules that cannot work."""
    super_users(str(values.get(SUPER_USERS, "")))
    if values.get(AUTHORIZER):
        return
    for name in (SUPER_USERS, ALLOWS_WITHOUT_RULES):
        if values.get(name):
            raise ConfigError(
                f"{name}={values[name]} has no effect without an authorizer: everybody may do everything; "
                f"set {AUTHORIZER}={AUTHORIZERS[0]}, or leave it out"
            )


def super_users(text: str) -> frozenset[str]:
    """The principals of ``super.users``. Raises ConfigError for one without a type.

    A comma does not divide, because many names have one: ``User:CN=broker,O=Example``.
    """
    principals = [one.strip() for one in text.split(";") if one.strip()]
    for principal in principals:
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise ConfigError(
                f"{SUPER_USERS}={text!r}: {principal!r} has no type; write User:NAME, and a semicolon "
                "between two"
            )
        if ",User:" in principal.replace(" ", ""):
            raise ConfigError(
                f"{SUPER_USERS}={text!r}: {principal!r} would be one principal; write a semicolon between two"
            )
    return frozenset(principals)
