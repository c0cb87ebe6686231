"""Keys and values as text, for reads with ``keyFormat=string`` or ``valueFormat=string``.

Arrow checks a whole column and copies nothing. A column with bytes that are no UTF-8 is converted row by row.
"""

import pyarrow as pa

from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog_datasource.rows.form import ColumnForm


class NotText(SparklogError):  # noqa: N818 (the field's word for the thing itself)
    """A key or value is no UTF-8, at this offset of a partition."""

    def __init__(self, column: str, topic_partition: TopicPartition, offset: int, why: str) -> None:
        super().__init__(
            f"the {column} at offset {offset} of {topic_partition} is no UTF-8 text: {why}. Leave out option "
            f"{column}Format to read it as binary, or set {column}Format.errors=null, which makes it null"
        )


def as_form(rows: pa.RecordBatch, column: str, form: ColumnForm, topic_partition: TopicPartition) -> pa.Array:
    """Column ``key`` or ``value`` of rows in ``records.row_columns.ROW_SCHEMA``, in the form ``form``.

    NotText for the first row that is no UTF-8, unless the form makes it null.
    """
    payloads = rows.column(column)
    if form is ColumnForm.BINARY:
        return payloads
    try:
        return payloads.cast(pa.string())
    except pa.ArrowInvalid:
        texts: list[str | None] = []
        for row, payload in enumerate(payloads.to_pylist()):
            try:
                texts.append(None if payload is None else payload.decode())
            except UnicodeDecodeError as error:
                if form is ColumnForm.TEXT:
                    offset = rows.column("offset")[row].as_py()
                    raise NotText(column, topic_partition, offset, _why(error)) from None
                texts.append(None)
        return pa.array(texts, pa.string())


def _why(error: UnicodeDecodeError) -> str:
    return f"{error.reason}, 0x{error.object[error.start]:02x} as byte {error.start} of {len(error.object)}"
