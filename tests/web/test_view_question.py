"""Parameters of requests are checked when they are read."""

import pytest

from sparklog.web.view_question import BadQuestion, Question, page_of


@pytest.mark.parametrize("given", ["1.5", "x", "1e3", "٣", "--1", "9" * 30, " 1", "0x10"])
def test_what_is_no_whole_number_is_refused_with_its_value(given: str) -> None:
    with pytest.raises(BadQuestion, match=r"offset='.*' is no whole number"):
        Question(query={"offset": given}).number("offset", 0)


def test_a_number_beyond_its_bounds_is_refused_with_both() -> None:
    with pytest.raises(BadQuestion, match="offset=-1: from 0 to 9223372036854775807"):
        Question(query={"offset": "-1"}).number("offset", 0)
    with pytest.raises(BadQuestion, match="limit=501: from 1 to 500"):
        Question(query={"limit": "501"}).number("limit", 50, least=1, most=500)


def test_a_number_of_the_path_goes_over_one_of_the_query() -> None:
    question = Question({"broker": "3"}, {"broker": "4"})
    assert question.number("broker", 0) == 3
    assert Question().number_or_none("broker") is None


def test_a_choice_is_one_of_those_there_are() -> None:
    assert Question().choice("sort", ("name", "size")) == "name"
    assert Question(query={"internal": "true"}).flag("internal")
    with pytest.raises(BadQuestion, match="sort='<script>' is none of name, size"):
        Question(query={"sort": "<script>"}).choice("sort", ("name", "size"))


def test_a_page_beyond_the_last_is_the_last() -> None:
    rows = list(range(250))
    assert page_of(rows, Question(query={"page": "1"}))["rows"] == list(range(100, 200))
    last = page_of(rows, Question(query={"page": "99"}))
    assert (last["rows"], last["page"], last["pages"], last["total"]) == (list(range(200, 250)), 2, 3, 250)
    assert page_of([], Question()) == {"rows": [], "page": 0, "pages": 1, "total": 0}
