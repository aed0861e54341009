"""Whether the SecretProviderClass is there, and asks for the identity's secret as the key-vault-user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from ops.doctor.model.check import Check, Fault, Stage, of_identity
from ops.world.expected import Identity
from ops.world.parts import Part
from ops.world.seen import NotReadError, entry, known
from ops.world.stack_world import StackWorld


def _find(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    state = known(world.state)
    classes, name = known(entry(world.control_planes, identity.cluster).classes), identity.secret_provider_class
    found = classes.get(name)
    fix = world.repair
    if state.cluster_side == "hypershift":
        fix = f"HyperShift writes it from the HostedCluster: compare that with {world.command('export', 'hypershift')}"
        if not classes:
            raise NotReadError(
                f"{identity.namespace} has no SecretProviderClass at all: HyperShift has not made them yet"
            )
    if found is None:
        yield Fault(evidence=f"there is no SecretProviderClass {name} in {identity.namespace}", fix=fix)
        return
    wanted = {
        "usePodIdentity": "false",
        "useVMManagedIdentity": "true",
        "userAssignedIdentityID": state.key_vault_user,
        "keyvaultName": state.vault_name,
        "tenantId": state.tenant_id,
    }
    differences = [
        f"{key} is {found.parameters.get(key)!r}, not {value!r}"
        for key, value in wanted.items()
        if found.parameters.get(key) != value
    ]
    if found.provider != "azure":
        differences.append(f"its provider is {found.provider!r}, not 'azure'")
    differences += _in_objects(found.parameters.get("objects", ""), identity)
    if differences:
        yield Fault(evidence=f"of {name} in {identity.namespace}, {'; '.join(differences)}", fix=fix)


def _in_objects(text: str, identity: Identity) -> list[str]:
    try:
        listed = [yaml.safe_load(each) for each in yaml.safe_load(text)["array"]]
    except (yaml.YAMLError, TypeError, KeyError):
        return ["`objects` cannot be read as the driver reads it: YAML with a list `array` of YAML texts"]
    of_secret: Any = next((each for each in listed if _name(each) == identity.secret), None)
    if of_secret is None:
        return [f"objectName is {', '.join(map(repr, map(_name, listed)))}, not {identity.secret!r}"]
    wanted = {"objectEncoding": identity.object_encoding, "objectType": "secret"}
    return [
        f"{key} is {of_secret.get(key)!r}, not {value!r}"
        for key, value in wanted.items()
        if of_secret.get(key) != value
    ]


def _name(item: object) -> object:
    return item.get("objectName") if isinstance(item, Mapping) else item


CHECKS: Final[tuple[Check, ...]] = (of_identity(Stage.CLASS, "class", (Part.CONTROL_PLANES,), _find),)
