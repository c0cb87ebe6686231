"""The diagrams of states in the pages are those of the tables of transitions."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("draw_states", ROOT / "scripts/draw_states.py")
draw_states = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(draw_states)

PAGES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}


def test_the_pages_have_what_the_command_draws():
    stale = [path for path, text in PAGES.items() if draw_states.page(text) != text]
    assert stale == [], "run scripts/draw_states.py"


def test_each_diagram_stands_on_one_page():
    drawn = [name for text in PAGES.values() for name in re.findall("<!-- drawn: (states of .*) -->", text)]
    assert sorted(drawn) == sorted(draw_states.DIAGRAMS)


def test_a_diagram_that_is_not_that_of_its_table_is_drawn_anew():
    text = "before\n<!-- drawn: states of a group -->\nold\n<!-- end -->\nafter\n"
    assert draw_states.page(text) == text.replace("old", draw_states.DIAGRAMS["states of a group"])
    assert "    Empty --> PreparingRebalance: the first member joins\n" in draw_states.page(text)
