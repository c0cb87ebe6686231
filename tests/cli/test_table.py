"""Tables are aligned and leave no cell empty."""

import pytest

from sparklog.cli.table import Table, render_table


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    table = render_table(["NAME", "COUNT"], [["events", 7], ["a", 12_345]])
    assert table.splitlines() == [
        "NAME    COUNT",
        "events      7",
        "a       12345",
    ]


def test_what_is_missing_is_a_dash_and_lists_are_joined() -> None:
    assert render_table(["ISR", "LEADER", "RACK"], [[(1, 2), None, ""], [(), 3, "r"]]).splitlines() == [
        "ISR  LEADER  RACK",
        "1,2       -  -",
        "-         3  r",
    ]


def test_characters_that_a_terminal_would_obey_are_shown_as_escapes() -> None:
    table = render_table(("GROUP", "MEMBERS"), [("a\x1b[2J\nb", ["c\u202ed"])])
    assert table.splitlines()[1:] == ["a\\x1b[2J\\nb  c\\u202ed"]


def test_a_table_without_rows_is_its_header() -> None:
    assert render_table(["A", "B"], []) == "A  B"


PARTITIONS = ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR"]
OFFSETS = ["LOG START", "LOCAL START", "HIGH WATERMARK", "LOG END"]
SPARE = ("LOCAL START", "EPOCH", "LOG START")
GROUPS = ["GROUP", "STATE", "PROTOCOL TYPE", "COORDINATOR"]
QUERY = "sparklog-query-nightly-load-of-all-orders-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


def lines_of(table: str) -> list[str]:
    return table.splitlines()


def test_headings_have_several_lines_before_anything_is_left_out() -> None:
    rows = [[0, 1, 4, (1, 2, 3), (1, 2, 3), 0, 0, 123_456_789, 123_456_789]]
    table = render_table([*PARTITIONS, *OFFSETS], rows, spare=SPARE, width=80)
    assert lines_of(table) == [
        "                                             LOG  LOCAL       HIGH",
        "PARTITION  LEADER  EPOCH  REPLICAS  ISR    START  START  WATERMARK    LOG END",
        "        0       1      4  1,2,3     1,2,3      0      0  123456789  123456789",
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_no_line_is_longer_than_the_terminal_is_wide(width: int) -> None:
    rows = [[0, 1, 4, tuple(range(101, 106)), (101, 102), 9 * 10**9, 10**10, 10**12, 10**12]]
    offsets = render_table([*PARTITIONS, *OFFSETS], rows, spare=SPARE, width=width)
    groups = render_table(GROUPS, [[QUERY, "Stable", "sparklog-query", 3]], width=width)
    for table in (offsets, groups):
        assert max(map(len, lines_of(table))) <= width
    assert ("no room" in offsets, QUERY in groups) == (width == 80, width == 200)


def test_what_can_be_spared_is_left_out_least_needed_first_and_named() -> None:
    rows = [["a" * 20, "b" * 20, "c" * 20]]
    table = render_table(["A", "B", "C"], rows, spare=("B", "C"), width=44)
    assert lines_of(table) == [
        f"A{' ' * 19}  C",
        f"{'a' * 20}  {'c' * 20}",
        "(no room for B; --json has all)",
    ]


def test_a_column_without_a_value_goes_first() -> None:
    table = render_table(["A", "EMPTY", "C"], [["a" * 20, None, "c"]], spare=("C",), width=25)
    assert lines_of(table)[-2:] == [f"{'a' * 20}  c", "(no room for EMPTY; --json has all)"]


def test_long_texts_are_folded_where_a_word_ends_and_nothing_of_them_is_lost() -> None:
    table = render_table(["GROUP", "LAG"], [[QUERY, 7], ["short", 123]], width=40)
    shown = lines_of(table)
    assert max(map(len, shown)) <= 40
    folded = [line[:35].rstrip() for line in shown[1:-1]]
    assert "".join(folded) == QUERY
    assert folded[0].endswith("-")
    assert shown[1].endswith("  7")
    assert shown[-1] == "short                                123"


def test_a_table_of_numbers_that_cannot_be_narrower_stays_as_it_is() -> None:
    assert lines_of(render_table(["A", "B"], [[10**9, 10**9]], width=8))[1] == "1000000000  1000000000"


def test_columns_says_the_width_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[QUERY, "Stable", "consumer", 3]]
    monkeypatch.delenv("COLUMNS", raising=False)
    assert QUERY in render_table(GROUPS, rows)
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, lines_of(render_table(GROUPS, rows, spare=("PROTOCOL TYPE",))))) <= 80


def test_a_rule_stands_below_the_headings() -> None:
    table = Table(["longest gap, ms", "now"], [["7", "leader"]], [True, False])
    assert table.fit(20) == []
    assert list(table.lines(rule="-")) == [
        "longest",
        "gap, ms  now",
        "-------  ------",
        "      7  leader",
    ]
