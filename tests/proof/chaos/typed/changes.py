"""Changes of the typed topic's columns, drawn for the newest version that is known."""

from random import Random
from typing import Final

from chaos.access import Access
from chaos.typed.columns import AGAIN, KEY, TOPIC, TYPES, WIDER
from histories.typed.columns import TopicColumns
from sparklog.client.cluster import ClusterClient
from sparklog.client.topic_schemas import alter_schema, describe_schemas
from sparklog.model.schema.change_texts import ADD, DROP, RENAME, WIDEN, SchemaChange, parse_change
from sparklog.model.schema.data_types import Field
from sparklog.model.schema.ddl_text import type_text
from sparklog.model.schema.document import SchemaDocument

COLUMNS_MIN: Final = 3
COLUMNS_MAX: Final = 8
"""Besides the key."""
CHANGES_MAX: Final = 3
"""Of one version."""
AGAINS: Final = 0.3
ASK_MS: Final = 60_000


def change_columns(cluster: ClusterClient, rng: Random) -> str:
    """One more version; what was changed. KafkaError if another change came first, or nobody answers."""
    known = describe_schemas(cluster, [TOPIC])[TOPIC]
    changes = drawn_changes(known, rng)
    alter_schema(cluster, TOPIC, known, parsed(changes))
    return f"version {known.version + 1}: {', '.join(' '.join(change) for change in changes)}"


def connected(access: Access, timeout_ms: int) -> ClusterClient:
    """A client that tries again for so long; the caller closes it."""
    return ClusterClient(access.bootstrap, connector=access.connector(), retry_timeout_ms=timeout_ms)


def columns_now(access: Access) -> dict[str, TopicColumns]:
    """The columns of the typed topic, as the checker's own decoder takes them."""
    with connected(access, ASK_MS) as cluster:
        return {TOPIC: TopicColumns(describe_schemas(cluster, [TOPIC])[TOPIC].encode())}


def drawn_changes(known: SchemaDocument, rng: Random) -> list[tuple[str, str]]:
    """Some changes, each of another column, as operation and text."""
    columns = [column for column in known.at(known.version) if column.name != KEY]
    rng.shuffle(columns)
    count, next_id = len(columns), known.next_id
    found: list[tuple[str, str]] = []
    for _ in range(rng.randint(1, CHANGES_MAX)):
        if count < COLUMNS_MAX and (count <= COLUMNS_MIN or rng.random() < 0.4 or not columns):
            names = {column.name for column in known.at(known.version)} | {
                text.split()[0] for _, text in found
            }
            name = AGAIN if AGAIN not in names and rng.random() < AGAINS else f"c{next_id}"
            found.append((ADD, f"{name} {rng.choice(TYPES)}"))
            count, next_id = count + 1, next_id + 1
        elif columns:
            found.append(_change(columns.pop(), count > COLUMNS_MIN, known.version + 1, rng))
            count -= found[-1][0] == DROP
    return found


def _change(column: Field, may_go: bool, version: int, rng: Random) -> tuple[str, str]:
    """Drop, widen or rename it."""
    wider = WIDER.get(type_text(column.type))
    if wider is not None and rng.random() < 0.4:
        return WIDEN, f"{column.name} {wider}"
    if column.name == AGAIN or (may_go and rng.random() < 0.5):
        return DROP, column.name
    return RENAME, f"{column.name}={column.name.partition('_')[0]}_{version}"


def parsed(changes: list[tuple[str, str]]) -> list[SchemaChange]:
    return [parse_change(*change) for change in changes]
