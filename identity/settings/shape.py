"""What the models expect at a place of the configuration, to report values that are missing, ill-typed or unknown."""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from identity.settings.form import Form
from identity.settings.problems import Place, enumerate_words


@dataclass(frozen=True)
class Shape:
    """A type without its wrappings, and the form among them."""

    annotation: Any
    form: Form | None = None

    @classmethod
    def of(cls, annotation: Any, metadata: Iterable[object] = ()) -> Shape:
        """Take `Annotated` and `| None` off."""
        form = next((each for each in metadata if isinstance(each, Form)), None)
        if get_origin(annotation) is Annotated:
            annotation, *inner = get_args(annotation)
            return cls.of(annotation, [*([form] if form else []), *inner])
        if get_origin(annotation) in (Union, types.UnionType):
            return cls.of(next(each for each in get_args(annotation) if each is not type(None)), [form])
        return cls(annotation, form)

    @property
    def model(self) -> type[BaseModel] | None:
        """The model, if this is the place of one."""
        return self.annotation if isinstance(self.annotation, type) and issubclass(self.annotation, BaseModel) else None

    @property
    def is_structure(self) -> bool:
        """Whether the stack file holds a mapping or a list here."""
        return self.model is not None or get_origin(self.annotation) in (dict, tuple)

    @property
    def choices(self) -> tuple[str, ...]:
        """The words to choose from, if there is a choice."""
        return get_args(self.annotation) if get_origin(self.annotation) is Literal else ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a model, as the stack file spells them."""
        return tuple(str(field.alias) for field in self.model.model_fields.values()) if self.model else ()

    @property
    def key_form(self) -> Form:
        """The form of a mapping's names; the types of `model.py` give every mapping one."""
        form = Shape.of(get_args(self.annotation)[0]).form
        assert form is not None, f"{self.annotation} has names without a form"
        return form

    @property
    def accepted(self) -> str:
        """Completes "accepted: ..."."""
        if self.form:
            return self.form.accepted
        if self.choices:
            return enumerate_words(self.choices, last="or")
        if self.model:
            return f"a mapping with the keys {enumerate_words(self.keys)}"
        kinds = {tuple: "a list", dict: "a mapping", bool: "true or false"}
        return kinds.get(get_origin(self.annotation) or self.annotation, "a text")

    def step(self, key: str | int) -> Shape | None:
        """The shape of one entry; None for a key that a model does not have."""
        if self.model:
            for field in self.model.model_fields.values():
                if field.alias == key:
                    return Shape.of(field.annotation, field.metadata)
            return None
        arguments = get_args(self.annotation)
        return Shape.of(arguments[1 if get_origin(self.annotation) is dict else 0]) if arguments else None

    def at(self, place: Place) -> Shape | None:
        """The shape at `place` below this one; None if there is nothing of the kind."""
        shape: Shape | None = self
        for key in place:
            shape = shape.step(key) if shape else None
        return shape
