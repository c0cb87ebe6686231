"""docs/security.md, line by line: its files are saved and its commands run, in their order."""

from collections.abc import Iterator
from dataclasses import replace
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


def test_the_cluster_with_logins_lets_its_user_in_and_nobody_else(reader: Person) -> None:
    blocks = list(blocks_of(DOCS / "security.md"))
    authority = next(block for block in blocks if block.kind == "bash")
    settings = next(block for block in blocks if "secrets.properties" in block.text)
    (start,) = (replace(block, kind="bash stays") for block in blocks if block.kind == "bash instead")
    (create,) = (replace(block, kind="bash") for block in blocks if block.kind == "bash then")
    for block in (authority, settings, start):
        reader.follow(block)
    assert "orders" in reader.follow(create)
    refused = "sed s/of-alice/of-bob/ alice-logs-in.properties > wrong.properties\n"
    refused += "! sparklog topics list --root logins --command-config wrong.properties 2>&1"
    assert "alice" in reader.follow(Block("", "bash", refused))
