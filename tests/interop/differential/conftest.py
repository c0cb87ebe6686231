"""One pair of brokers for all dialogues."""

from collections.abc import Iterator, Mapping

import pytest

from tests.interop.differential.sides import both_sides
from tests.interop.differential.talk import Address
from tests.interop.kafka_jars import java


@pytest.fixture(scope="session")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Address]]:
    """The addresses of a broker of ours and of one of Apache Kafka's."""
    java()
    with both_sides(tmp_path_factory.mktemp("differential")) as addresses:
        yield addresses
