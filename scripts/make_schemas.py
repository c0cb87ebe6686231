"""Write sparklog/wire/schemas.json: the layout of Kafka's messages, from the schemas of the ``kio`` package.

Run it, in the development environment, after an API or a version was added to
``sparklog/core/apis/api_table.py``:

    .venv/bin/python scripts/make_schemas.py

A test compares the file with what this makes. ``sparklog/wire/schema.py`` describes the file.
"""

import dataclasses
import importlib
import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from sparklog.core.apis.api import Api
from sparklog.wire import schema
from sparklog.wire.versions import API_VERSIONS, INTERNAL_VERSIONS

FILE = Path(schema.__file__).with_name(schema.SCHEMAS)


def main() -> None:
    FILE.write_text(schemas_text())
    print(f"wrote {FILE}: {FILE.stat().st_size} bytes")


def schemas_text() -> str:
    """The file, one line for each run of versions with the same layout."""
    messages = []
    for _, api in sorted({**API_VERSIONS, **INTERNAL_VERSIONS}.items()):
        for direction in ("request", "response"):
            lines = ",\n".join(json.dumps(layout) for layout in _layouts(api, direction))
            messages.append(f'"{api.name} {direction}": [\n{lines}\n]')
    return "{\n" + ",\n".join(messages) + "\n}\n"


def _layouts(api: Api, direction: str) -> list[dict[str, Any]]:
    layouts: list[dict[str, Any]] = []
    for version in range(api.min, api.max + 1):
        module = importlib.import_module(f"kio.schema.{api.module}.v{version}.{direction}")
        entity = getattr(module, api.name + direction.capitalize())
        layout = {"flexible": bool(entity.__flexible__), "fields": _fields(entity)}
        if layouts and layouts[-1] == {**layout, "versions": layouts[-1]["versions"]}:
            layouts[-1]["versions"][1] = version
        else:
            layouts.append({"versions": [version, version], **layout})
    return layouts


def _fields(entity: Any) -> list[dict[str, Any]]:
    return [_field(field) for field in dataclasses.fields(entity)]


def _field(field: "dataclasses.Field[Any]") -> dict[str, Any]:
    inner, is_nullable = _without_none(field.type)
    is_array = get_origin(inner) is tuple
    if is_array:
        inner = get_args(inner)[0]
    kafka_type = field.metadata.get("kafka_type")
    is_time = kafka_type is not None and kafka_type.startswith(("timedelta_", "datetime_"))
    made: dict[str, Any] = {"name": field.name + ("_ms" if is_time else "")}
    if "tag" in field.metadata:
        made["tag"] = field.metadata["tag"]
    if is_array:
        made["array"] = True
    if is_nullable:
        made["nullable"] = True
    return made | ({"fields": _fields(inner)} if kafka_type is None else {"type": kafka_type})


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """The type beside None in ``X | None``, and whether there was a None."""
    if get_origin(annotation) is not UnionType:
        return annotation, False
    (inner,) = (argument for argument in get_args(annotation) if argument is not NoneType)
    return inner, True


if __name__ == "__main__":
    main()
