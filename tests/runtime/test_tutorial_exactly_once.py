"""docs/tutorial-exactly-once.md, line by line: its files are saved and its commands run, in their order."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import DOCS, Person, blocks_of

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(600)]

ORDERS = 30_000


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Person]:
    reader = Person(tmp_path, "tutorial")
    yield reader
    reader.interrupt()


def test_nothing_is_lost_or_there_twice_after_the_crash_of_the_page(reader: Person) -> None:
    printed = "".join(reader.follow(block) for block in blocks_of(DOCS / "tutorial-exactly-once.md"))
    assert "once: killed when " in printed
    assert f"doubled: {ORDERS} orders, " in printed
    assert f"once: {ORDERS} orders, 0 of them more than once" in printed
    assert printed.splitlines()[-1].strip() == str(ORDERS)
