"""What the models expect at a place of the configuration, and the report of what is refused there."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from identity import yaml_text
from identity.settings.schema.problems import (
    Place,
    Problem,
    enumerate_words,
    kind_of,
    path_of,
    show,
    to_remove,
    to_set,
    value_at,
)

_RULES: Final = Path(__file__).parents[1] / "rules/accepted.yaml"
_FORMS: Final = yaml_text.load(Path(__file__).with_name("forms.yaml").read_text(encoding="utf-8"))
PLACEHOLDER: Final = "the placeholder of the example, still to be filled in"
REFUSED: Final = "refused"
CREDENTIAL: Final = "credential"
"""The type of the error for a value that must not be shown."""
# Of a Key Vault secret's name; every key is longer.
_LONGEST_NAME: Final = 127
ZERO_UUID: Final = "00000000-0000-0000-0000-000000000000"


def refused(reason: str) -> PydanticCustomError:
    """The error that a validator raises; an empty reason leaves it to `accepted`."""
    return PydanticCustomError(REFUSED, "{reason}", {"reason": reason})


@dataclass(frozen=True, kw_only=True)
class ValueSpec:
    """The form of a value, as metadata of an annotated type.

    `rule` is its id in `Problem`. `accepted` completes "accepted: ..."; `blank` is the placeholder in the fixing
    command, which `hint` follows. `check` returns the normalized value; it raises ValueError with a reason, empty if
    `accepted` is enough.
    """

    rule: str
    accepted: str
    blank: str
    check: Callable[[Any], Any]
    hint: str = ""
    # A guess at what was meant, offered if it passes `check`.
    guess: Callable[[str], str] | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._validated, handler(source))

    def _validated(self, value: Any) -> Any:
        try:
            str(value).encode()
            return self.check(value)
        except PydanticCustomError:
            raise
        except UnicodeEncodeError:  # JSON can spell it (\ud800)
            raise refused("it holds half of a character") from None
        except ValueError as error:
            raise refused(str(error)) from None

    def guessed(self, text: object) -> str | None:
        """The value that was probably meant, if there is one."""
        if self.guess is None or not isinstance(text, str):
            return None
        candidate = self.guess(text)
        try:
            self.check(candidate)
        except ValueError:
            return None
        return candidate


def matching(pattern: str) -> Callable[[str], str]:
    """A check that the whole string matches."""
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError
        return text

    return check


def without_credentials(pattern: str) -> Callable[[str], str]:
    """A check that refuses a key or a signature in an address, and a text that does not match the whole pattern."""
    matches = matching(pattern)

    def check(text: str) -> str:
        if "@" in text or "sig=" in text:
            raise PydanticCustomError(CREDENTIAL, "{reason}", {"reason": "it seems to have a credential in it"})
        return matches(text)

    return check


def form(
    rule: str,
    check: Callable[[Any], Any] | None = None,
    guess: Callable[[str], str] | None = None,
    forms: Mapping[str, Mapping[str, str]] = _FORMS,
) -> ValueSpec:
    """The form of a rule in `forms.yaml`; without a `check` the whole value matches its pattern."""
    row = forms[rule]
    return ValueSpec(
        rule=rule,
        accepted=row["accepted"],
        blank=row["blank"],
        check=check or matching(row["pattern"]),
        hint=row.get("hint", ""),
        guess=guess,
    )


def integer(low: int, high: int, unit: str) -> ValueSpec:
    """The form of an integer from `low` to `high`."""

    def check(number: int) -> int:
        if not low <= number <= high:
            raise ValueError
        return number

    return ValueSpec(
        rule="integer",
        accepted=f"an integer, {low} to {high} {unit}, without quotes",
        blank=f"<{low}-{high}>",
        check=check,
    )


def ascending(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Check that each number is larger than the one before it."""
    if list(numbers) != sorted(set(numbers)):
        raise ValueError("they are not in ascending order, each once")
    return numbers


def uuid(text: str) -> str:
    """Check a UUID and return it in lower case, as Azure answers: a second spelling would show as a change."""
    matching(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")(text)
    if text == ZERO_UUID:
        raise ValueError(PLACEHOLDER)
    return text.lower()


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

    @property
    def blank(self) -> str:
        """The placeholder of a single value in a command that sets it."""
        return self.spec.blank if self.spec else f"<{'|'.join(self.choices or ('true', 'false'))}>"

    def step(self, key: str | int) -> SchemaNode | None:
        """The node of one entry; None for a key that a model does not have."""
        if self.model:
            for info in self.model.model_fields.values():
                if info.alias == key:
                    return SchemaNode.of(info.annotation, info.metadata)
            return None
        arguments = get_args(self.annotation)
        return SchemaNode.of(arguments[1 if get_origin(self.annotation) is dict else 0]) if arguments else None

    def at(self, place: Place) -> SchemaNode | None:
        """The node at `place` below this one; None if there is none."""
        node: SchemaNode | None = self
        for key in place:
            node = node.step(key) if node else None
        return node


@cache
def _accepted() -> Mapping[str, Any]:
    table: Mapping[str, Any] = yaml_text.load(_RULES.read_text(encoding="utf-8"))
    return table


def accepted_by(rule: str, place: Place, /, **words: object) -> str:
    """What a rule between settings accepts at a place: its row of `rules/accepted.yaml`, or that of the key there."""
    row = _accepted()[rule]
    text: str = row[place[-1]] if isinstance(row, Mapping) else row
    return text.format(here=path_of(place[:-1]), **words)


@dataclass(frozen=True)
class ReportedPlace:
    """A place in the configuration, and the report that collects the problems of all places.

    `place / key` is the one below it. `secret_keys` are the top-level keys whose values must not be shown; `settings`
    are there once the single values were validated.
    """

    secret_keys: Collection[str]
    place: Place = ()
    problems: list[Problem] = field(default_factory=list, compare=False)
    settings: BaseModel | None = field(default=None, compare=False)

    def __truediv__(self, step: str | int) -> ReportedPlace:
        return self.at((*self.place, step))

    def __str__(self) -> str:
        return path_of(self.place)

    @property
    def value(self) -> Any:
        """The setting here, None without one; raises RefusedValueError if it was refused before."""
        return value_at(self.settings, self.place)

    def at(self, place: Place) -> ReportedPlace:
        """Another place."""
        return replace(self, place=place)

    def refuse(
        self, rule: str, fix: str | None = None, *, otherwise: str = "", reason: str = "", **words: object
    ) -> None:
        """Refuse the setting here by a rule; without a `fix` it is to be removed. `otherwise` is another way out.

        `words` are those of the rule in `rules/accepted.yaml`. See `refuse_value`. Raises RefusedValueError as `value`
        does.
        """
        fix = (self.to_remove() if fix is None else fix) + (f", or {otherwise}" if otherwise else "")
        accepted = accepted_by(rule, self.place, **words)
        self.refuse_value(self.value, rule=rule, accepted=accepted, fix=fix, reason=reason)

    def require(self, rule: str, value: str = "", *, otherwise: str = "", reason: str = "", **words: object) -> None:
        """Refuse what is here, or that nothing is, as `refuse` does: it is to be set, to `value` as in `to_set`."""
        self.refuse(rule, self.to_set(value), otherwise=otherwise, reason=reason, **words)

    def require_own(self, rule: str, owners: dict[str, object], name: str) -> bool:
        """Refuse a name here that has an owner already, the rule's word `first`; returns whether."""
        if (first := owners.setdefault(name, self)) is self:
            return False
        self.require(rule, first=first)
        return True

    def require_one(self, rule: str, *keys: str) -> None:
        """Refuse the mapping here unless exactly one of these keys has a value; without any the first is to be set."""
        given = [key for key in keys if (self / key).value is not None]
        if len(given) != 1:
            fix = " or ".join((self / key).to_remove() for key in given) or (self / keys[0]).to_set()
            reason = f"it holds {enumerate_words(given)}" if given else "it is empty"
            self.refuse(rule, fix, reason=reason, keys=enumerate_words(keys))

    def refuse_value(self, value: object, *, rule: str, accepted: str, fix: str, reason: str = "") -> None:
        """Refuse a value here by a rule. A `reason` says what is wrong with the value if `accepted` does not."""
        if self.hides(value) and isinstance(value, (str, int, float)):
            found = f"{kind_of(value)} that is not shown because it may be a secret"
        else:
            found = show(value) + (f": {reason}" if reason else "")
        self.problems.append(Problem(place=self.place, rule=rule, found=found, accepted=accepted, fix=fix))

    def hides(self, value: object) -> bool:
        """Whether `value` here may be a secret: it is declared as one, or somebody may have written a credential
        document or a private key instead of its file's path.
        """
        is_short = isinstance(value, str) and len(value) <= _LONGEST_NAME
        is_credential = "credential" in self.place[-2:] and not is_short
        is_key = "serviceAccountSigningKey" in self.place[-2:] and isinstance(value, str) and not is_short
        is_signed = self.place == ("backend",) and isinstance(value, str) and ("@" in value or "sig=" in value)
        return self.place[0] in self.secret_keys or is_credential or is_key or is_signed

    def to_set(self, value: str = "", *, options: str = "") -> str:
        """The command that sets a value here, by default the placeholder of its type."""
        if not value:
            node = SchemaNode(type(self.settings)).at(self.place)
            assert node is not None, f"a rule names {self}"
            value = node.blank
        return to_set(self.place, value, options=options)

    def to_remove(self) -> str:
        """The command that removes the value here."""
        return to_remove(self.place)
