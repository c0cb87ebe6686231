"""Names of topics."""

import pytest

from sparklog.model.ids import collides, topic_name_problem


@pytest.mark.parametrize("name", ["events", "a.b_c-D9", "x" * 249])
def test_a_legal_topic_name_has_no_problem(name) -> None:
    assert topic_name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "empty"),
        (".", "may not be named"),
        ("..", "may not be named"),
        ("x" * 250, "longer than 249"),
        ("a b", "characters other than"),
        ("é", "characters other than"),
    ],
)
def test_an_illegal_topic_name_is_told_why(name, problem) -> None:
    assert problem in topic_name_problem(name)


def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    assert collides("a.b", "a_b")
    assert not collides("a.b", "a.b")
    assert not collides("a.b", "a.c")
