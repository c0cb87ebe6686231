"""Two runs of one scenario are the same, whatever order a file system lists names in."""

import pytest

from crash_points.calls import Change
from crash_points.explore import is_alike


@pytest.mark.parametrize(
    ("change", "recorded", "is_same"),
    [
        (Change("unlink", "t-0/b"), Change("unlink", "t-0/a"), True),
        (Change("unlink", "t-1/a"), Change("unlink", "t-0/a"), False),
        (Change("unlink", "t-0/a"), Change("rmdir", "t-0/a"), False),
        (Change("write", "t-0/b", 0, b"1"), Change("write", "t-0/a", 0, b"1"), False),
        (Change("write", "t-0/a", 0, b"2"), Change("write", "t-0/a", 0, b"1"), True),
        (Change("rename", "a", new_path="b"), Change("rename", "a", new_path="c"), False),
    ],
)
def test_only_the_names_of_one_directory_may_go_in_another_order(
    change: Change, recorded: Change, is_same: bool
) -> None:
    assert is_alike(change, recorded) is is_same
