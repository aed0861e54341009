"""The models' expectations by place in the configuration, to report missing, ill-typed or unknown values."""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from identity.settings.schema.problems import Place, enumerate_words
from identity.settings.schema.value_spec import ValueSpec


@dataclass(frozen=True)
class SchemaNode:
    """A type without `Annotated` and `| None`, and its `ValueSpec`."""

    annotation: Any
    spec: ValueSpec | None = None

    @classmethod
    def of(cls, annotation: Any, metadata: Iterable[object] = ()) -> SchemaNode:
        """Unwrap a type."""
        spec = next((item for item in metadata if isinstance(item, ValueSpec)), None)
        if get_origin(annotation) is Annotated:
            annotation, *inner = get_args(annotation)
            return cls.of(annotation, [*([spec] if spec else []), *inner])
        if get_origin(annotation) in (Union, types.UnionType):
            return cls.of(next(argument for argument in get_args(annotation) if argument is not type(None)), [spec])
        return cls(annotation, spec)

    @property
    def model(self) -> type[BaseModel] | None:
        """The model, if the type is one."""
        return self.annotation if isinstance(self.annotation, type) and issubclass(self.annotation, BaseModel) else None

    @property
    def is_structure(self) -> bool:
        """Whether the stack file holds a mapping or a list here."""
        return self.model is not None or get_origin(self.annotation) in (dict, tuple)

    @property
    def is_mapping(self) -> bool:
        """Whether the stack file holds a mapping with free names here."""
        return get_origin(self.annotation) is dict

    @property
    def choices(self) -> tuple[str, ...]:
        """The accepted words of an enumeration."""
        if isinstance(self.annotation, type) and issubclass(self.annotation, StrEnum):
            return tuple(self.annotation)
        return get_args(self.annotation) if get_origin(self.annotation) is Literal else ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a model, as the stack file spells them."""
        return tuple(str(field.alias) for field in self.model.model_fields.values()) if self.model else ()

    @property
    def key_spec(self) -> ValueSpec:
        """The `ValueSpec` of a mapping's names; the types of `model.py` give every mapping one."""
        spec = SchemaNode.of(get_args(self.annotation)[0]).spec
        assert spec is not None, f"{self.annotation} has names without a spec"
        return spec

    @property
    def rule(self) -> str:
        """The id of the rule that a wrong value breaks: that of its `ValueSpec`, else its kind."""
        if self.spec:
            return self.spec.rule
        if self.choices:
            return "choice"
        return "structure" if self.is_structure else "boolean"

    @property
    def accepted(self) -> str:
        """Completes "accepted: ..."."""
        if self.spec:
            return self.spec.accepted
        if self.choices:
            return enumerate_words(self.choices, last="or")
        if self.model:
            return f"a mapping with the keys {enumerate_words(self.keys)}"
        kinds = {tuple: "a list", dict: "a mapping", bool: "true or false"}
        return kinds[get_origin(self.annotation) or self.annotation]

    def step(self, key: str | int) -> SchemaNode | None:
        """The node of one entry; None for a key that a model does not have."""
        if self.model:
            for field in self.model.model_fields.values():
                if field.alias == key:
                    return SchemaNode.of(field.annotation, field.metadata)
            return None
        arguments = get_args(self.annotation)
        return SchemaNode.of(arguments[1 if get_origin(self.annotation) is dict else 0]) if arguments else None

    def at(self, place: Place) -> SchemaNode | None:
        """The node at `place` below this one; None if there is none."""
        node: SchemaNode | None = self
        for key in place:
            node = node.step(key) if node else None
        return node
