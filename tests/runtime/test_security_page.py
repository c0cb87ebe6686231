"""docs/security.md, line by line: its files are saved and its commands run, in their order."""

import re
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


def blocks(*sections: str) -> list[Block]:
    """The blocks of these sections, each to be followed; a cluster in place of another one stays, too."""
    kinds = {"bash instead": "bash stays", "bash then": "bash"}
    found = [block for block in blocks_of(DOCS / "security.md") if block.section in sections]
    assert {block.section for block in found} == set(sections)
    return [replace(block, kind=kinds.get(block.kind, block.kind)) for block in found]


def test_one_command_leads_to_two_teams_that_cannot_see_each_other(reader: Person) -> None:
    secured = blocks("A secured cluster")
    printed = [reader.follow(block) for block in secured]
    users = next(text for text in printed if "stock-moves" in text)
    assert "sales-orders" not in users.partition("TOPIC")[2]
    assert "['hello']" in "".join(printed)
    assert "CN=broker" in printed[-1]
    refused = "! sparklog topics describe sales-orders --root secured --command-config bob.properties 2>&1"
    assert "TOPIC_AUTHORIZATION_FAILED" in reader.follow(Block("", "bash", refused))
    assert "sales-orders" in (reader.folder / "secured" / "audit" / "controller.jsonl").read_text()
    again = "sparklog topics list --root secured --command-config alice.properties"
    assert "sales-orders" in reader.follow(Block("", "bash", again))
    of_bob, of_alice = (reader.follow(block) for block in blocks("Access rules", "Quotas"))
    assert re.search(r"sales-orders.*READ", of_bob)
    assert re.search(r"alice.*producer_byte_rate", of_alice)


def test_each_command_of_the_page_does_what_the_page_says(reader: Person) -> None:
    sections = blocks("TLS with other certificates", "Replace a certificate")
    assert "['hello']" in "".join(map(reader.follow, sections))
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
    authority = blocks("TLS with other certificates")[0]
    settings, start, create = (block for block in blocks("Logins") if block.kind != "properties")
    for block in (authority, settings, start):
        reader.follow(block)
    assert "orders" in reader.follow(create)
    refused = "sed s/of-alice/of-bob/ alice-logs-in.properties > wrong.properties\n"
    refused += "! sparklog topics list --root logins --command-config wrong.properties 2>&1"
    assert "alice" in reader.follow(Block("", "bash", refused))
