"""Tables are aligned and leave no cell empty."""

from sparklog.cli.table import render_table


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


def test_a_table_without_rows_is_its_header() -> None:
    assert render_table(["A", "B"], []) == "A  B"
