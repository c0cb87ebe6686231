"""docs/settings.md is made from the settings themselves.

Write it anew with: python tests/model/test_settings_page.py
"""

from collections.abc import Mapping
from pathlib import Path

from sparklog.model.config import BROKER_SETTINGS, TOPIC_SETTINGS, Setting, render

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

HEAD = """# Settings

Settings have Kafka's names. A property that Kafka 3.9 has and sparklog does not act on (yet) is accepted with
one warning that says so; a name that neither has is refused with the nearest known one. This page is made
from the code.
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
        f"## Of a topic\n\n`sparklog topics create NAME --config name=value`\n\n{topic_table()}\n"
    )


def test_the_page_says_what_the_settings_say() -> None:
    assert PAGE.read_text() == page(), "run: python tests/model/test_settings_page.py"


if __name__ == "__main__":
    PAGE.write_text(page())
