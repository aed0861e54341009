"""A row of the emulated azure-native's table: the provider's metadata of a type, which the SDK lacks."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final, Literal

from emulated.sdk_types import properties

IN_A_GROUP: Final = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
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


@dataclass(frozen=True, kw_only=True)
class _TypeRow:
    token: str
    api_version: str
    path: str

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Inputs that are part of the path, in its order."""
        return tuple(name for name in re.findall(r"{(\w+)}", self.path) if name != "subscriptionId")

    @property
    def module_name(self) -> str:
        """The SDK's module: the middle of the token."""
        return self.token.split(":")[1]

    @property
    def type_name(self) -> str:
        """The last part of the token: a class of the SDK, or a function in camelCase."""
        return self.token.split(":")[2]

    def resource_id(self, subscription_id: str, inputs: Mapping[str, str]) -> str:
        """The ARM id that the inputs lead to."""
        values = {name: inputs[name].strip("/") if name in SCOPES else inputs[name] for name in self.parameters}
        return self.path.format(subscriptionId=subscription_id, **values)

    def _sdk(self, *names: str) -> type:
        return _sdk_class(self.module_name, *names)


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class FunctionRow(_TypeRow):
    """A function that reads one resource, or with `action` posts that to it.

    `options` are arguments of the SDK, and the query parameters of the API that they are sent as.
    """

    action: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, module: str, name: str, api_version: str, path: str) -> FunctionRow:
        """The row of a function that reads a resource."""
        return cls(token=f"azure-native:{module}:{name}", api_version=api_version, path=path)

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs of the function."""
        return (*self.parameters, *self.options)

    @property
    def outputs(self) -> type:
        """The SDK's class of the result."""
        return self._sdk(f"{self.type_name[0].upper()}{self.type_name[1:]}Result")
