"""Every object of the management cluster that the program registers in any shape of the configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.components import world
from tests.unit.components.program import run_program
from tests.unit.components.shapes import shapes

Object = dict[str, Any]


def registered_objects(folder: Path, ends: str = "") -> list[Object]:
    """Run the program in `folder` once for each shape whose name ends so; an object that several have is there once."""
    (folder / "kubeconfig").write_text(world.KUBECONFIG, encoding="utf-8")
    azure = {**world.lookups(), "azure-native:keyvault:getManagedHsm": {}}
    found: dict[str, Object] = {}
    for shape in (shape for name, shape in shapes()[0].items() if name.endswith(ends)):
        for resource in run_program(folder, invokes=azure, **shape).registered:
            if resource.type.startswith("kubernetes:"):
                found[json.dumps(resource.inputs, sort_keys=True)] = dict(resource.inputs)
    return list(found.values())


def of_the_release(document: Object) -> Object:
    """The object without a field that is newer than the release whose definitions are at hand: `keyVaultType`."""
    copy: Object = json.loads(json.dumps(document))
    encryption = copy.get("spec", {}).get("secretEncryption", {}) if copy["kind"] == "HostedCluster" else {}
    encryption.get("kms", {}).get("azure", {}).pop("keyVaultType", None)
    return copy
