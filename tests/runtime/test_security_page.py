"""docs/security.md, line by line: its files are saved and its commands run, in their order."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import DOCS, Block, Person, blocks_of
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.proof, pytest.mark.timeout(400)]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Person]:
    reader = Person(tmp_path, ".")
    yield reader
    reader.interrupt()


def test_each_command_of_the_page_does_what_the_page_says(reader: Person) -> None:
    printed = "".join(reader.follow(block) for block in blocks_of(DOCS / "security.md"))
    assert "['hello']" in printed
    logs = reader.folder / "cluster" / "logs"
    for number in (1, 2, 3):
        log, address = logs / f"broker-{number}.log", f"--bootstrap-server 127.0.0.1:{9091 + number}"
        listing = Block("", "bash", f"sparklog topics list {address} --command-config alice.properties")
        until(
            lambda log=log, listing=listing: (
                "events" in reader.follow(listing)
                and "certificates and keys are read again" in log.read_text()
            ),
            f"the new certificate in {log}",
        )
