"""What a text says of columns that are not there: the nearest one, and those that there are."""

from sparklog.model.schema.near_names import first_names, not_there


def test_a_column_that_is_not_there_comes_with_the_nearest_and_those_that_are() -> None:
    assert not_there(["Mag", "depth"], ["id", "mag", "a b"], "topic 't'") == (
        "no columns Mag (near mag), depth in topic 't', which has id, mag, `a b`: correct the name, or load "
        "again what was loaded before a change"
    )


def test_names_that_are_left_out_are_dots() -> None:
    assert first_names(["a", "b", "c"], 3) == "a, b, c"
    assert first_names(["a", "b", "c"], 2) == "a, b, …"
    assert first_names([], 2) == ""
