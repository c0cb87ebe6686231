"""docs/tutorial-typed-topics.md, line by line: its files are saved and its commands run, in their order."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import DOCS, Block, Person, blocks_of

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(600)]

PAGE = DOCS / "tutorial-typed-topics.md"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Person]:
    reader = Person(tmp_path, "columns")
    yield reader
    reader.interrupt()


def test_each_command_prints_what_the_page_says(reader: Person) -> None:
    printed: dict[str, str] = {}
    said: list[Block] = []
    for block in blocks_of(PAGE):
        if block.kind == "text":
            said.append(block)
        printed[block.section] = printed.get(block.section, "") + reader.follow(block)
    assert printed["The stream"].splitlines()[-3:] == ["no JSON", '{"id":7,', '{"id":"seven"}']
    assert "key: id" in printed["The stream"]
    assert '"mag":' in printed["Rows with types"].splitlines()[-1]
    assert len(said) == 2
    for block in said:
        assert block.text in printed[block.section]
