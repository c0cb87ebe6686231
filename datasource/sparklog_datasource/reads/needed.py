"""Which columns of its sparklog reads a frame needs, as Spark's optimiser sees it.

Spark asks a Python source for all columns of a read, and drops those that are not needed afterwards. Its
optimised plan shows which these are: no operation above the read refers to them, and the result lacks them.
"""

from collections.abc import Iterator
from typing import Any, Final

from sparklog.model.errors import SparklogError
from sparklog.model.schema.paths import quoted
from sparklog_datasource.rows.form import untyped_columns
from sparklog_datasource.rows.typed_form import PLACE

_READS: Final = ("DataSourceV2ScanRelation", "DataSourceV2Relation", "StreamingRelationV2")
_NAMED: Final = frozenset(
    {
        "Aggregate", "Project", "Filter", "Join", "Sort", "Window", "GlobalLimit", "LocalLimit", "Offset",
        "Sample", "Repartition", "RepartitionByExpression", "SubqueryAlias", "EventTimeWatermark", "Expand",
        "ResolvedHint", "WithCTE", "CTERelationDef",
    }
)  # fmt: skip
"""Operations that hand columns on as they are, or name those that they use. Any other, such as a union, which
goes by places, is taken to use all that it gets."""


def needed_of(frame: Any) -> list[str]:
    """For each sparklog read in the frame, the value of option ``columns`` that suffices.

    SparklogError for a frame of Spark Connect, or one without such a read.
    """
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None:
        raise SparklogError(
            "the plan of a Spark Connect frame is at its server: see frame.explain(), and name the columns"
        )
    analysed = java_frame.queryExecution().analyzed()
    plan = java_frame.sparkSession().sessionState().optimizer().execute(analysed)
    nodes = list(_nodes(plan))
    used = set(_ids(plan.output()))
    for node in nodes:
        used |= set(_ids(node.references().toSeq()))
        if node.nodeName().split(" ")[0] not in _NAMED:
            for child in _each(node.children()):
                used |= set(_ids(child.output()))
    found = [_wanted(node, used) for node in nodes if _is_ours(node)]
    if not found:
        raise SparklogError("the frame has no read of format sparklog")
    return found


def _nodes(plan: Any) -> Iterator[Any]:
    """The plan's nodes, those of subqueries too, each before those that it reads."""
    yield plan
    for below in (*_each(plan.children()), *_each(plan.subqueries())):
        yield from _nodes(below)


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(nth) for nth in range(sequence.size()))


def _ids(attributes: Any) -> Iterator[int]:
    return (attribute.exprId().id() for attribute in _each(attributes))


def _is_ours(node: Any) -> bool:
    if not node.getClass().getSimpleName().startswith(_READS):
        return False
    relation = node.relation() if node.getClass().getSimpleName() == _READS[0] else node
    return "sparklog" in str(relation.table().name()).lower()


def _wanted(node: Any, used: set[int]) -> str:
    columns = [(attribute.name(), attribute.exprId().id()) for attribute in _each(node.output())]
    names = [name for name, number in columns if number in used]
    if not names:
        there = {name for name, _ in columns}
        offset = "offset" if there <= set(untyped_columns()) else PLACE[2]
        names = [offset]
    return ", ".join(map(quoted, names))
