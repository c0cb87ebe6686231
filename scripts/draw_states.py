"""Write the diagrams and tables of states in ``docs``, from the tables of transitions of the code.

Run it, in the development environment, after such a table was changed:

    .venv/bin/python scripts/draw_states.py

A page says with two comments where a diagram stands, and which one:

    <!-- drawn: states of a group -->
    <!-- end -->

A test compares the pages with what this makes.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from sparklog.core.group import states as group_states
from sparklog.core.transaction_coordinator import states as transaction_states
from sparklog.core.transition_table import Transition
from sparklog_runtime.supervision import slot_states
from sparklog_runtime.supervision.slot_states import Row, SlotState

DOCS: Final = Path(__file__).parents[1] / "docs"
_BLOCK: Final = re.compile(r"(<!-- drawn: (?P<name>states of [^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def diagram(rows: Iterable[Transition[Any]], name: Callable[[Any], str]) -> str:
    """``name`` of a state is one word."""
    arrows = [f"    {name(row.before)} --> {name(row.after)}: {row.cause}" for row in rows]
    return "\n".join(["```mermaid", "stateDiagram-v2", *arrows, "```"])


def table(rows: Iterable[Row]) -> str:
    """What a slot's supervisor does in each state."""
    lines = ["| state | fact | then | the supervisor |", "|---|---|---|---|"]
    for row in rows:
        before = ", ".join(state.value for state in SlotState if state in row.before)
        if len(row.before) == len(SlotState) - 1:
            before = f"all but {row.after}"
        lines.append(f"| {before} | {row.fact} | {row.after or 'the same'} | {row.do.value} |")
    return "\n".join(lines)


DIAGRAMS: Final = {
    "states of a group": diagram(group_states.TRANSITIONS, str),
    "states of a transactional id": diagram(transaction_states.TRANSITIONS, lambda state: state.label),
    "states of a slot": table(slot_states.ROWS),
}


def page(text: str) -> str:
    """The page with its diagrams as the tables are."""
    return _BLOCK.sub(lambda found: f"{found[1]}{DIAGRAMS[found['name']]}\n{found[3]}", text)


def main() -> None:
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if page(text) != text:
            path.write_text(page(text), encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
