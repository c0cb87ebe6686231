"""docs/settings.md is made from the settings themselves.

Write it anew with: python tests/model/test_settings_page.py
"""

from collections.abc import Mapping
from pathlib import Path

from sparklog.model.settings.setting import Setting, render
from sparklog.model.settings.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

HEAD = """# Settings

Settings have Kafka's names. A property of Kafka 3.9 that sparklog does not act on (yet) is accepted with a
warning; an unknown name is refused with the nearest known one. This page is made from the code.

A setting that promises safety which sparklog does not give yet is refused unless it has Kafka's default:
those of other stores of rules, delegation tokens, revoked certificates, policies and
`delete.topic.enable`; also with a prefix `listener.name.NAME.`, and while brokers run.

A setting `ssl.…` holds for all listeners that speak TLS, and `listener.name.NAME.ssl.…` (NAME in lower case)
for one; `sasl.…` and `connections.max.reauth.ms` also for a mechanism of one, as
`listener.name.NAME.scram-sha-512.…`. Passwords and keys among them are references: `${file:PATH:KEY}` names a
value in a properties file, `${directory:DIR:FILE}` a file's content, `${env:NAME}` a variable of the broker's
process. Such a file must have the mode 0600 (0640 where root owns it), or it is refused. Brokers read changed
files again within ten seconds; AlterConfigs of these settings is refused.
"""

LISTENERS = """## Listeners

A broker listens at each entry of `listeners`. Clients get the addresses that brokers advertise for the
listener that they connect to, such as one inside and one outside of a network:

```properties
listeners=INTERNAL://:0,EXTERNAL://0.0.0.0:0
advertised.listeners=INTERNAL://:0,EXTERNAL://brokers.example.org:0
listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT
inter.broker.listener.name=INTERNAL
```

An empty host is the broker's own address. 0.0.0.0 listens on all of them, and needs an entry in
`advertised.listeners`. Port 0 is a port of each broker's own, which `--port` assigns, listener by listener:
with three brokers and `--port 9092`, INTERNAL has 9092 to 9094 and EXTERNAL 9095 to 9097; with `--port 0`
each takes a free one. Another port is every broker's, and is refused where several brokers share a machine.
`sparklog start` shows the first advertised listener. Without `listeners` a broker has one, PLAINTEXT.

`inter.broker.listener.name` is the same for all brokers and applications of a cluster. A broker that lacks it
gets no roles, and the controller's log says so.
"""


def bounds(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(setting.choices)
    if setting.kind not in ("int", "float"):
        return ""
    if setting.maximum is None:
        return f"{setting.minimum} or more"
    return f"{setting.minimum} to {setting.maximum}"


def table(settings: Mapping[str, Setting]) -> str:
    lines = ["| setting | default | values | |", "|---|---|---|---|"]
    for setting in settings.values():
        name = f"`{setting.name}`"
        lines.append(f"| {name} | {render(setting.default)} | {bounds(setting)} | {setting.doc} |")
    return "\n".join(lines)


def topic_table() -> str:
    lines = ["| setting | the broker's default |", "|---|---|"]
    lines += [
        f"| `{setting.name}` | {f'`{setting.broker_name}`' if setting.broker_name else setting.doc} |"
        for setting in TOPIC_SETTINGS.values()
    ]
    return "\n".join(lines)


def page() -> str:
    return (
        f"{HEAD}\n## Of a broker\n\n`sparklog start -c name=value`\n\n{table(BROKER_SETTINGS)}\n\n"
        f"{LISTENERS}\n"
        f"## Of a topic\n\n`sparklog topics create NAME --config name=value`\n\n{topic_table()}\n"
    )


def test_the_page_says_what_the_settings_say() -> None:
    assert PAGE.read_text() == page(), "run: python tests/model/test_settings_page.py"


if __name__ == "__main__":
    PAGE.write_text(page())
