"""The reference of the configuration, written from the settings: `docs/reference/configuration.md` and `Pulumi.yaml`.

`python -m tools.docs.configuration` (`make generate`) writes both; a test compares them with the models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from identity.settings.schema.base import FilledIn
from identity.settings.schema.model import Settings
from identity.settings.schema.schema_node import SchemaNode
from identity.yaml_text import dump

PROJECT: Final = Path(__file__).parents[2]
PAGE: Final = PROJECT / "docs/reference/configuration.md"
PROJECT_FILE: Final = PROJECT / "Pulumi.yaml"
_WIDTH: Final = 120
_CONFIG: Final = "\nconfig:\n"
_INTRODUCTION: Final = """\
# Configuration
This page is written by `make generate` from the models in `identity/settings/`, where a key has its type, its default
and its description; change it there.

Every key belongs to the namespace `idstack:` of a stack file. All problems are reported together, each with its key
path, what was found, what is accepted and how to fix it, before anything is registered; an unknown key is an error that
names the nearest known one.
`a[].b` is the key `b` of each entry of the list `a`.
"""
_PIPE: Final = r"\|"
_HEADER: Final = "| key | accepted | default | description |\n|---|---|---|---|\n"


@dataclass(frozen=True, kw_only=True)
class KeyReference:
    """One key of the configuration: its path (`hostedClusters[].kms.activeKey`) and what people need to know of it."""

    path: str
    accepted: str
    default: str
    description: str


def references(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[KeyReference]:
    """Every key of a model and of the structures in it, in their order."""
    for field in model.model_fields.values():
        node = SchemaNode.of(field.annotation, field.metadata)
        path = f"{prefix}{field.alias}"
        yield KeyReference(
            path=path, accepted=_accepted(node), default=_default(field), description=str(field.description)
        )
        nested, step = _nested(node)
        if nested is not None:
            yield from references(nested, f"{path}{step}.")


def page() -> str:
    """`docs/reference/configuration.md`: the stack's own keys, then a section for each structure."""
    every = list(references())
    structures = {row.path.split(".")[0] for row in every if "." in row.path}
    whole = [_INTRODUCTION, "\n## The stack\n", _HEADER]
    whole += [_line(row) for row in every if "." not in row.path and not _heads(row, structures)]
    for head in (row for row in every if _heads(row, structures)):
        required = " Required." if head.default == "required" else ""
        whole += [f"\n## `{head.path}`\n{head.description}{required}\n\n", _HEADER]
        whole += [_line(row) for row in every if row.path.startswith((f"{head.path}.", f"{head.path}[]."))]
    return "".join(whole)


def project_file(text: str) -> str:
    """`Pulumi.yaml` (its `text`) with a new schema of the configuration; the rest stays as it is."""
    head, separator, _ = text.partition(_CONFIG)
    if not separator:
        raise ValueError('Pulumi.yaml has no line "config:"; restore it, the schema is written below it')
    schema = dump({"config": _schema()}, width=_WIDTH)
    return f"{head}\n{schema}"


def _schema() -> dict[str, Any]:
    """Pulumi's schema. Each key has a default that is not null, so that the program itself reports what is missing."""
    schema = {}
    for field in Settings.model_fields.values():
        node = SchemaNode.of(field.annotation, field.metadata)
        nested, _ = _nested(node)
        description = str(field.description).replace("`", "")
        if field.is_required() and not _filled_in(field):
            description += " Required."
        if nested is not None:
            description += f" Keys: {_keys(nested)}."
        schema[str(field.alias)] = {**_type(node), "description": description, "default": _pulumi_default(field, node)}
    return schema


def _type(node: SchemaNode) -> dict[str, Any]:
    entry = node.step(0) if get_origin(node.annotation) is tuple else None
    if entry is not None:
        return {"type": "array", "items": _type(entry)}
    if node.is_structure:
        return {"type": "object"}
    return {"type": "boolean" if node.annotation is bool else "string"}


def _pulumi_default(field: FieldInfo, node: SchemaNode) -> Any:
    filled_in = _filled_in(field)
    if filled_in is not None:
        return filled_in.default.strip("`")
    if node.is_structure:
        return [] if get_origin(node.annotation) is tuple else {}
    return "" if field.default in (None, PydanticUndefined) else field.default


def _keys(model: type[BaseModel]) -> str:
    """The keys of a structure, those of structures in it in brackets."""
    words = []
    for field in model.model_fields.values():
        nested, step = _nested(SchemaNode.of(field.annotation, field.metadata))
        words.append(f"{field.alias}{step}" + (f" ({_keys(nested)})" if nested is not None else ""))
    return ", ".join(words)


def _nested(node: SchemaNode) -> tuple[type[BaseModel] | None, str]:
    """The model whose keys are below this key, and the step between: into a list, or into a mapping of models."""
    if node.model is not None:
        return node.model, ""
    entry = node.step(0) if node.is_structure else None
    if entry is None or entry.model is None:
        return None, ""
    return entry.model, "[]" if get_origin(node.annotation) is tuple else ".<field>"


def _accepted(node: SchemaNode) -> str:
    if node.spec is not None:
        return node.spec.accepted
    if node.model is not None:
        return "a mapping"
    if get_origin(node.annotation) is tuple:
        entry = node.step(0)
        return "a list of mappings" if entry is None or entry.model is not None else f"a list, each {entry.accepted}"
    if get_origin(node.annotation) is dict:
        name, value = (SchemaNode.of(argument) for argument in get_args(node.annotation))
        words = ["a mapping", *([f"each name {name.spec.accepted}"] if name.spec else [])]
        return "; ".join([*words, *([f"each value {value.accepted}"] if value.spec else [])])
    return node.accepted


def _default(field: FieldInfo) -> str:
    filled_in = _filled_in(field)
    if filled_in is not None:
        return filled_in.default
    if field.is_required():
        return "required"
    match field.get_default(call_default_factory=True):
        case BaseModel():
            return "as below"
        case bool() as value:
            return f"`{str(value).lower()}`"
        case str() | int() as value:
            return f"`{value}`"
        case (_, *_) as values:
            return f"`[{', '.join(map(str, values))}]`"
    return "none"


def _filled_in(field: FieldInfo) -> FilledIn | None:
    return next((item for item in field.metadata if isinstance(item, FilledIn)), None)


def _heads(row: KeyReference, structures: set[str]) -> bool:
    """Whether the row is a structure on the level of the stack."""
    return row.path in structures or f"{row.path}[]" in structures


def _line(row: KeyReference) -> str:
    # Outside of code, Markdown takes `<name>` for HTML.
    cells = (f"`{row.path}`", row.accepted.replace("<", "&lt;"), row.default, row.description)
    return f"| {' | '.join(cell.replace('|', _PIPE) for cell in cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    PROJECT_FILE.write_text(project_file(PROJECT_FILE.read_text(encoding="utf-8")), encoding="utf-8")
