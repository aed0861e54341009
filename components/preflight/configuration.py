"""Loads Pulumi's raw configuration as typed settings, and compares their spelling with that of the last run.

Azure ignores the case of names and ids. The state, and names of role assignments, have the letters of the first run:
others would replace them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pulumi

from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE, LocalEnvironment
from identity.naming import VAULT_TYPE, split_arm_id
from identity.outputs import StackOutputs
from identity.settings import ConfigurationError, Problem, Settings, load_settings
from identity.settings.schema.arm_ids import canonical
from identity.settings.schema.problems import NAMESPACE, Place, to_set
from identity.settings.stack_file import written_for

_GROUP: Final = "resource group"
# What a key of the configuration, or of the outputs, names, by the last words of its place.
_NAMED: Final[Mapping[tuple[str, ...], str]] = {
    ("resourceGroup",): _GROUP,
    ("dnsZoneResourceGroup",): _GROUP,
    ("vault", "name"): VAULT_TYPE,
    ("keyVaultName",): VAULT_TYPE,
    ("secretName",): f"{VAULT_TYPE}/secrets",
    ("keyVaultUser", "name"): "Microsoft.ManagedIdentity/userAssignedIdentities",
    ("managementCluster", "name"): "Microsoft.ContainerService/managedClusters",
}


def load() -> Settings:
    """Load the stack's settings from Pulumi's configuration.

    Raises ConfigurationError with every problem, and RunError if the record of the local cloud cannot be read.
    """
    # Not the project's name: a program of another project has settings of its own.
    namespace = f"{NAMESPACE}:"
    config = {
        key.removeprefix(namespace): value
        for key, value in pulumi.runtime.get_config_env().items()
        if key.startswith(namespace)
    }
    secret_keys = [key.removeprefix(namespace) for key in pulumi.runtime.get_config_secret_keys_env()]
    written = written_for(pulumi.get_stack(), Path.cwd())
    return load_settings(config, secret_keys=secret_keys, local=_local_environment(), written=written)


def _local_environment() -> LocalEnvironment | None:
    path = os.environ.get(LOCAL_ENVIRONMENT_VARIABLE)
    if not path:
        return None
    try:
        return LocalEnvironment.from_file(Path(path))
    except (OSError, ValueError) as error:
        raise pulumi.RunError(
            f"{LOCAL_ENVIRONMENT_VARIABLE} does not name a record of the local cloud ({error}). `.venv/bin/idstack up` "
            "starts the local cloud and sets the variable. For a stack on Azure, unset it."
        ) from None


def refuse_other_spelling(settings: Settings, last: StackOutputs[Any]) -> None:
    """Raise ConfigurationError for each value that differs only in case from the outputs of the `last` complete run."""
    known: dict[tuple[str, str], set[str]] = {}
    for place, text in _leaves(last):
        for kind, name in _names(place, canonical(text)):
            known.setdefault((kind, name.lower()), set()).add(name)
    refused: dict[str, Problem] = {}
    for place, value in _leaves(settings.model_dump(by_alias=True)):
        have = known.get((_kind(place), value.lower()), {value})
        if value not in have:
            present = min(have)
            accepted = f'"{present}", as the stack has it: Azure ignores case, and Pulumi would replace it'
            fix = to_set(place, present)
            problem = Problem(place=place, rule="other-letter-case", found=f'"{value}"', accepted=accepted, fix=fix)
            # A value that follows from another one is that one's problem.
            refused.setdefault(value, problem)
    if refused:
        raise ConfigurationError(list(refused.values()))


def _leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Every text in mappings and lists, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*place, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leaves(item, (*place, index))


def _kind(place: Place) -> str:
    """What a text names: an ARM id, unless the last words of its place say which type's name it is."""
    return next((kind for words, kind in _NAMED.items() if place[-len(words) :] == words), "")


def _names(place: Place, text: str) -> Iterator[tuple[str, str]]:
    """What a text of the outputs names, with its type: an ARM id and each name in it, or a name alone."""
    if not text.startswith("/"):
        yield from [(kind, text)] if (kind := _kind(place)) else []
        return
    yield "", text
    try:
        arm_id = split_arm_id(text)
    except ValueError:
        return
    yield _GROUP, arm_id.resource_group
    namespace, *types = arm_id.type.split("/")
    for depth, name in enumerate(arm_id.names, 1):
        yield "/".join((namespace, *types[:depth])), name
