"""What the report makes of windows and acknowledgements."""

import pytest

from chaos.report import (
    Ack,
    Part,
    Window,
    as_markdown,
    as_text,
    kinds_table,
    longest_gap,
    measure,
    summed,
    told_sends,
    violated_rules,
)
from histories import History, check
from histories.model import FinalRead, Send
from histories.report import as_lines

S = 1_000_000_000


def _window(name="kill", begin=10, ended=11, whole=20, number=1, **fields):
    return Window(number, name, f"{name}: broker 1", begin * S, ended * S, whole * S, **fields)


@pytest.mark.parametrize(
    ("times", "gap"),
    [
        ([], 0),
        ([5], 0),
        ([1, 2, 3], 0),  # nobody sent any more
        ([8, 12], 4),  # reaches in from before
        ([12, 19, 26], 7),  # reaches out
        ([1, 4, 11, 12, 25, 60], 13),  # neither the 3 before it nor the 35 after it
        ([2, 40], 38),  # spans all of it
    ],
)
def test_the_longest_gap_that_touches_a_window(times, gap):
    assert longest_gap(times, 10, 20) == gap


def test_a_window_counts_what_the_partition_worst_off_waited():
    window = _window()
    acks = [Ack("t", 0, at * S) for at in range(30)] + [Ack("t", 1, 9 * S), Ack("t", 1, 15 * S)]
    measure([window], acks, ["t"])
    assert window.unavailable_s == 6
    assert window.acks == 10 + 1


def test_topics_that_may_be_unavailable_are_not_measured():
    window = _window()
    measure([window], [Ack("moved", 0, 1 * S), Ack("moved", 0, 90 * S)], ["t"])
    assert (window.unavailable_s, window.acks) == (0.0, 0)


def test_the_table_has_a_row_for_each_kind_and_reasons_for_those_not_run():
    windows = [
        _window("pause", unavailable_s=1.0),
        _window("kill", unavailable_s=2.0),
        _window("kill", unavailable_s=4.0, whole=31),
        _window("kill + pause", unavailable_s=9.0),
        _window("pause + wipe", unavailable_s=7.0),
    ]
    rows = kinds_table(windows, {"power-cut": "needs root"})
    assert rows[1:] == [
        ("kill", "2", "4.0", "3.0", "20.0", ""),
        ("pause", "1", "1.0", "1.0", "9.0", ""),
        ("two at once", "2", "9.0", "8.0", "9.0", ""),
        ("power-cut", "not run", "", "", "", "needs root"),
    ]
    assert as_markdown(rows).splitlines()[1] == "|---|---|---|---|---|---|"
    assert as_text(rows).splitlines()[-1].split() == ["power-cut", "not", "run", "needs", "root"]


def test_a_finding_outweighs_too_little_traffic_and_both_outweigh_clean_parts():
    clean = Part(1, 60.0, sends={"ok": 5, "info": 1})
    invalid = Part(2, 60.0, sends={"ok": 1}, invalid=["too few acknowledgements"])
    violated = Part(3, 60.0, findings=["lost"], invalid=["too few windows"])
    assert [part.verdict for part in (clean, invalid, violated)] == ["CLEAN", "INVALID", "VIOLATED"]
    assert summed([clean, clean])["verdict"] == "CLEAN"
    assert summed([clean, invalid])["verdict"] == "INVALID"
    assert summed([])["verdict"] == "INVALID"
    total = summed([clean, invalid, violated])
    assert total["verdict"] == "VIOLATED"
    assert (total["minutes"], total["sends"], total["findings"]) == (3.0, {"ok": 6, "info": 1}, ["lost"])


def test_a_kind_that_ran_in_one_part_is_not_counted_as_not_run():
    parts = [
        Part(1, 1.0, not_run={"zombie": "busy", "power-cut": "needs root"}),
        Part(2, 1.0, windows=[_window("kill + zombie")]),
    ]
    assert summed(parts)["not_run"] == {"power-cut": "needs root"}


def test_windows_are_counted_by_what_the_brokers_were_in():
    parts = [
        Part(1, 1.0, windows=[_window("zombie-elsewhere")], spark="none"),
        Part(2, 1.0, windows=[_window(), _window()]),
        Part(3, 1.0, windows=[_window()]),
    ]
    assert summed(parts)["clusters"] == {
        "with brokers outside of Spark": 1,
        "with an executor for each broker": 3,
    }


def test_of_the_checkers_words_the_broken_rules_are_told_and_the_counts_left_out():
    history = History()
    for at, value in enumerate(("a", "b")):
        history.sends.append(
            Send("p", "t", 0, value, -1, "s", at, True, at, outcome="ok", done_ns=9, offset=at)
        )
    history.finals.append(FinalRead("t", 0, 0, 3, [(0, "a"), (1, "b"), (2, "a")], 10))
    said = "\n".join(as_lines(check(history)))
    assert " ok, " in said
    assert " not judged: " in said
    first, *examples = violated_rules(said).splitlines()
    assert first.split() == ["L4", "NothingIsDoubled", "1"]
    assert examples[0] == "       t-0: a is at 0 and at 2"
    assert [line for line in examples if not line.startswith("       ")] == [
        "L5   ProducersKeepTheirOrder          1"
    ]


def test_acknowledged_sends_that_were_not_judged_are_told_beside_all_sends():
    parts = [
        Part(1, 60.0, sends={"ok": 5_000}, not_judged={"topic deleted": 1_200}),
        Part(2, 60.0, sends={"ok": 1, "info": 2}, not_judged={"topic deleted": 1, "no final read": 1}),
    ]
    total = summed(parts)
    assert total["not_judged"] == {"topic deleted": 1_201, "no final read": 1}
    told = "2 info, 5,001 ok; 1,202 acknowledged and not judged (1 no final read, 1,201 topic deleted)"
    assert told_sends(total["sends"], total["not_judged"]) == told


def test_that_all_acknowledged_sends_were_judged_is_told_too():
    assert told_sends({"ok": 3}, {}) == "3 ok; 0 acknowledged and not judged"
