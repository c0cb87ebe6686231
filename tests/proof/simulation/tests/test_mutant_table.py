"""The table of mutants: its rows are measured, and put in their places by a script."""

import re

from simulation.mutants import MUTANTS
from simulation.seeds import mutant_table as table

ROW = re.compile(r"^\| `([\w-]+)` \|.*\| (\d+) \|$", re.MULTILINE)


def rows_of(page):
    return dict(ROW.findall(page))


def test_every_mutant_has_a_row_with_its_budget_and_nobody_else_has_one():
    assert rows_of(table.PAGE.read_text(encoding="utf-8")) == {
        mutant.name: str(mutant.seeds_max) for mutant in MUTANTS
    }


def test_a_measured_row_takes_the_place_of_the_one_before_and_others_stay():
    one, other = MUTANTS[0], MUTANTS[1]
    caught = [table.Catch(3, "SomeRule")] * 5
    page = f"before\n\n{table.HEAD}\n{table.RULE}\n\nafter\n"
    page = table.merged(page, {other.name: table.row(other, caught), one.name: table.row(one, caught)})
    again = table.merged(page, {one.name: table.row(one, [table.Catch(5, "OtherRule")] * 5)})
    assert list(rows_of(again)) == [one.name, other.name]
    assert "`OtherRule` | 5 | 5 |" in again
    assert again.count("`SomeRule` | 3 | 3 |") == 1
    assert again.startswith("before\n")
    assert again.endswith("\n\nafter\n")


def test_the_row_of_a_mutant_that_is_no_more_goes():
    page = f"{table.HEAD}\n{table.RULE}\n| `gone` | `SomeRule` | 1 | 1 | 20 |\n\nafter\n"
    assert rows_of(table.merged(page, {})) == {}


def test_a_mutant_that_was_not_caught_is_told_as_that():
    mutant = MUTANTS[0]
    missed = table.Catch(mutant.seeds_max + 1, "")
    assert f"> {mutant.seeds_max} | > {mutant.seeds_max} |" in table.row(mutant, [missed] * 5)


def test_a_median_is_told_of_all_starts_only():
    assert "| – | 3 |" in table.row(MUTANTS[0], [table.Catch(3, "SomeRule")])


def test_a_start_that_did_not_catch_it_shows_as_more_than_the_budget():
    mutant = MUTANTS[0]
    catches = [table.Catch(mutant.seeds_max + 1, ""), *[table.Catch(2, "SomeRule")] * 4]
    assert f"| 2 | > {mutant.seeds_max} | {mutant.seeds_max} |" in table.row(mutant, catches)
