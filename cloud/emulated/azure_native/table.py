"""The metadata of each resource type and function of the emulated azure-native: a row of `table.yaml` each.

Argument and output types come from the installed SDK; a row holds the provider's metadata, which the SDK lacks.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter

from emulated.sdk_types import properties
from localcloud.core import yaml_text

_IN_A_GROUP: Final = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
# Parameters at the beginning of a path that are a complete id.
SCOPES: Final = frozenset({"scope", "resourceUri"})
_LOADING: Final = threading.Lock()


@cache
def _sdk_class(module: str, *names: str) -> type:
    """The first of these classes that the SDK has.

    Its module loads at first use, under a lock, so that no thread sees an incomplete module.
    """
    with _LOADING:
        classes = importlib.import_module(f"pulumi_azure_native.{module}")
        cls: type = next(getattr(classes, name) for name in names if hasattr(classes, name))
        return cls


@dataclass(frozen=True)
class _TypeRow:
    """`name` is `<module of the SDK>:<class, or function in camelCase>`, the end of the token."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    name: str
    api_version: str
    path: str

    @property
    def token(self) -> str:
        """The engine's name of the type or function."""
        return f"azure-native:{self.name}"

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Inputs that are part of the path, in its order."""
        return tuple(name for name in re.findall(r"{(\w+)}", self.path) if name != "subscriptionId")

    @property
    def module_name(self) -> str:
        """The SDK's module."""
        return self.name.partition(":")[0]

    @property
    def type_name(self) -> str:
        """A class of the SDK, or a function in camelCase."""
        return self.name.partition(":")[2]

    def resource_id(self, subscription_id: str, inputs: Mapping[str, str]) -> str:
        """The ARM id that the inputs lead to."""
        values = {name: inputs[name].strip("/") if name in SCOPES else inputs[name] for name in self.parameters}
        return self.path.format(subscriptionId=subscription_id, **values)

    def _sdk(self, *names: str) -> type:
        return _sdk_class(self.module_name, *names)


@dataclass(frozen=True)
class ResourceRow(_TypeRow):
    """A resource type.

    Attributes:
        force_new: inputs of the body, or dotted paths in them, whose change replaces; those of the path always do.
        patterns: what an input must look like, refused before any request.
        sub_resources: arrays that are resources of their own, as paths of inputs: `[]` on create and left alone on
            update when not given.
        defaults: inputs that an update sends with these values when they are not given, because ARM would keep what is
            there (`propertyDefaults` in `gen/defaults.go`).
        vault_collection: the collection at the vault's own endpoint that deletes it, because ARM cannot.
    """

    force_new: frozenset[str] = frozenset()
    patterns: Mapping[str, str] = field(default_factory=dict)
    sub_resources: tuple[tuple[str, ...], ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    vault_collection: str | None = None

    @property
    def arguments(self) -> type:
        """The SDK's class of arguments; its name differs where a property's class has taken it."""
        return self._sdk(f"{self.type_name}InitArgs", f"{self.type_name}Args")

    @property
    def name_input(self) -> str:
        """The input that names it, the path's last; the real provider generates one, the emulated one requires it."""
        return self.parameters[-1]

    @property
    def flattened(self) -> bool:
        """Whether the SDK's arguments are in `properties` of the request, a level that the SDK does not show."""
        return "properties" not in properties(self.arguments)

    def wire_path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Where the inputs at `path` are in the body of a request."""
        return ("properties", *path) if self.flattened else path

    @property
    def outputs(self) -> type:
        """The SDK's class of the resource, whose properties are its outputs."""
        return self._sdk(self.type_name)

    def replaces(self, path: str, kind: Literal["add", "delete", "update"] = "update") -> bool:
        """Whether a change of this kind at this property path replaces the resource (`calculateValueDiff` in diff.go).

        An object that replaces does so for each changed value in it, not for one that is added or removed.
        Elements of an array replace nothing, except inside such an object.
        """
        names = re.sub(r"\[\d+\]", "[]", path).split(".")
        objects = {".".join(names[:end]) for end in range(1, len(names))} if kind == "update" else set()
        return not (objects | {".".join(names)}).isdisjoint({*self.parameters, *self.force_new})


@dataclass(frozen=True)
class FunctionRow(_TypeRow):
    """A function that reads one resource, or with `action` posts that to it.

    `options` are arguments of the SDK, and the query parameters of the API that they are sent as.
    """

    action: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.parameters, *self.options)

    @property
    def outputs(self) -> type:
        """The SDK's class of the result."""
        return self._sdk(f"{self.type_name[0].upper()}{self.type_name[1:]}Result")


_Row = TypeVar("_Row", bound=_TypeRow)
_FILE: Final = yaml_text.load(Path(__file__).with_suffix(".yaml").read_bytes())


def _rows(kind: str, cls: type[_Row]) -> dict[str, _Row]:
    """The rows of `table.yaml` by their tokens."""
    adapter = TypeAdapter(cls)
    documents = ({**document, "path": _whole(document["path"])} for document in _FILE[kind])
    return {row.token: row for row in map(adapter.validate_python, documents)}


def _whole(path: str) -> str:
    return path if path.startswith("/") else f"{_IN_A_GROUP}/{path}".rstrip("/")


RESOURCES: Final = _rows("resources", ResourceRow)
FUNCTIONS: Final = _rows("functions", FunctionRow)
