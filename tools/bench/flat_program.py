"""The peer: a flat Pulumi script that registers the very resources of our program, without our components' code.

It calls the SDKs' classes one after another and imports the libraries that our program needs besides them. Inputs are
constants, or outputs of the resources before, as in our program. `tools/bench/flat.py` records what is to be
registered. The engine shows that nothing is left out: it must find no change when this script runs in place of our
program.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import cryptography.x509  # noqa: F401 - imported as our program does, to make documents
import httpx  # noqa: F401 - as our program does, to try its access to the management cluster
import pulumi
import pydantic  # noqa: F401 - as our program does, for its settings
from pulumi_kubernetes.apiextensions import CustomResource

from identity.resource_types import OWN
from tools.bench.flat import CONSTANT, DERIVED, OUTPUT, RECORDING, STACK_TYPE

_registered: dict[str, pulumi.Resource] = {}


@cache
def _class(token: str) -> Any:
    """The SDK's class of a type token; kinds that the Kubernetes SDK does not know are custom resources."""
    package, module, name = token.split(":")
    path = {
        "azure-native": f"pulumi_azure_native.{module}",
        "azuread": "pulumi_azuread",
        "kubernetes": f"pulumi_kubernetes.{module.replace('/', '.')}",
        "idstack": "components.plugin.resources",
        "pulumi": f"pulumi_{name.replace('-', '_')}",
    }[package]
    try:
        return getattr(importlib.import_module(path), "Provider" if package == "pulumi" else name)
    except ModuleNotFoundError:
        if package != "kubernetes":
            raise
        return CustomResource


def _argument(recorded: Mapping[str, Any]) -> Any:
    if OUTPUT in recorded:
        return getattr(_registered[recorded["of"]], recorded[OUTPUT])
    if DERIVED in recorded:
        value = recorded[DERIVED]
        known = pulumi.Output.all(*(_registered[urn].id for urn in recorded["of"])).apply(lambda _: value)  # type: ignore[attr-defined]
        return pulumi.Output.secret(known) if recorded["secret"] else known
    return pulumi.Output.secret(recorded[CONSTANT]) if recorded["secret"] else recorded[CONSTANT]


@cache
def _names(kind: Any) -> Mapping[str, str]:
    """The names of a class's arguments, by those of the properties."""
    if kind is CustomResource:
        return {"apiVersion": "api_version", "kind": "kind", "metadata": "metadata", "spec": "spec"}
    parameters = inspect.signature(getattr(kind, "_internal_init", kind.__init__)).parameters
    return {_camel_case(name): name for name in parameters}


def _camel_case(name: str) -> str:
    head, *tail = name.rstrip("_").split("_")
    return head + "".join(word.capitalize() for word in tail)


def _register(row: Mapping[str, Any]) -> None:
    if row["type"] == STACK_TYPE:
        for name, value in row["outputs"].items():
            pulumi.export(name, _argument(value))
        return
    options = pulumi.ResourceOptions(
        parent=_registered.get(row["parent"]),
        depends_on=[_registered[dependency] for dependency in row["dependsOn"]],
        providers=[_registered[provider] for provider in row["providers"]],  # type: ignore[misc]
        **row["options"],
    )
    if not row["custom"]:
        component = pulumi.ComponentResource(row["type"], row["name"], None, options)
        component.register_outputs({name: _argument(value) for name, value in row["outputs"].items()})
        _registered[row["urn"]] = component
        return
    kind = _class(row["type"])
    given = {name: _argument(value) for name, value in row["inputs"].items()}
    if not row["type"].startswith(OWN):
        names = _names(kind)
        given = {names[name]: value for name, value in given.items() if name in names}
    _registered[row["urn"]] = kind(row["name"], opts=options, **given)


for registration in json.loads(Path(os.environ[RECORDING]).read_text(encoding="utf-8")):
    _register(registration)
