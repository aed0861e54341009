"""A stack's configuration, copied for the local cloud, and the names in it by which the report speaks.

Whatever is another's in a rehearsal is replaced: tenant, subscription, cloud, backend, secrets provider, the ways to
sign in, documents issued elsewhere. Everything else is the stack's own, so that the plan is the stack's own.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from identity.clouds import (
    CLOUDS,
    DEFAULT_CLOUD,
    LOCAL_CLOUD,
    LOCAL_SUBSCRIPTION_ID,
    LOCAL_TENANT_ID,
    Cloud,
)
from identity.login_kinds import LoginKind
from identity.settings import ConfigurationError, Settings, load_settings
from identity.settings.problems import for_stack
from identity.settings.schema.kms import key_vault_type_of
from identity.settings.schema.problems import NAMESPACE, Place, path_of
from ops.stack import local_cloud
from ops.stack.configuration import shared_stack_of
from ops.stack.environment import LOCAL_STACK, is_local
from ops.stack.errors import CommandError

_SUBSCRIPTIONS: Final = "subscriptions"
_ZEROS: Final = "0"
_SECURE: Final = "secure"
_SHARED: Final = "sharedStack"
# The slowest replica of the local Entra ID lags by 1.5 seconds: more would only take time.
_SETTLE: Final = 2
_SUCCESSES: Final = 5
# Of a workload of the user's own: the local kubelet runs processes of this machine, not images.
_PLACEHOLDER: Final = ["sleep", "infinity"]


@dataclass(frozen=True)
class Names:
    """The names of stacks: the stack's own, and those that a stack of the local cloud may have."""

    stacks: tuple[str, ...]

    def local(self, stack: str) -> str:
        """The name in the rehearsal: `local-<name>`, with a number where two would be equal; a local one keeps its."""
        return self._local[stack]

    @cached_property
    def _local(self) -> Mapping[str, str]:
        found: dict[str, str] = {name: name for name in self.stacks if is_local(name)}
        for stack in (name for name in self.stacks if name not in found):
            plain = "".join(each if each.isascii() and each.isalnum() else "-" for each in stack.lower())
            stem = "-".join([LOCAL_STACK, *filter(None, plain.split("-"))])
            taken, number = set(found.values()), 2
            name = stem
            while name in taken:
                name, number = f"{stem}-{number}", number + 1
            found[stack] = name
        return found

    def own(self, text: str) -> str:
        """The text with the stacks' own names in the place of the rehearsal's."""
        for stack, name in sorted(self._local.items(), key=lambda each: -len(each[1])):
            if stack != name:
                text = text.replace(name, stack)
        return text


@dataclass(frozen=True)
class Copied:
    """The copy of one stack's configuration.

    `document` is the file for the engine. `settings` are typed, with everything filled in. `documents` has, by the path
    that the copy names, the ARM id of the managed identity whose document the local MSI data plane issues there.
    `left_out` says what the rehearsal cannot show.
    """

    stack: str
    document: Mapping[str, Any]
    settings: Settings
    documents: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def shared_stack(self) -> str | None:
        """Name of the shared stack in the rehearsal."""
        named = self.settings.shared_stack
        return None if named is None else named.rpartition("/")[2]


def family(stack: str, configurations: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """The stacks that are rehearsed together: `stack` with the one that it shares and those that share it, that first.

    Empty if there is no such stack.
    """
    if stack not in configurations:
        return ()
    shared = shared_stack_of(configurations[stack])
    first = [shared] if shared is not None and shared in configurations else []
    others = (name for name, document in configurations.items() if shared_stack_of(document) == stack)
    return tuple(dict.fromkeys([*first, stack, *others]))


def families(
    stack: str, before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The families of `stack` at base and head, by the files of both.

    A new stack has at the base what of its family is there already: it may share that, and may take a cluster of it.
    """
    at_head = family(stack, after)
    return family(stack, before) or tuple(each for each in at_head if each in before), at_head


def copied(stack: str, document: Mapping[str, Any], names: Names, directory: Path, seed: int) -> Copied:
    """Copy a stack's configuration; documents of managed identities will be in `directory`.

    Raises CommandError for what the program refuses in it, and for values of this project that are encrypted. Those of
    another namespace stay behind: they are for default providers, which every stack of this project disables.
    """
    config = copy.deepcopy(dict(document.get("config") or {}))
    others = sorted(config.keys() - _keys(config))
    foreign = [key for key in others if any(_secrets(config[key], (key,)))]
    for key in foreign:
        del config[key]
    if hidden := [path_of(place) for place in _secrets(config)]:
        raise CommandError(
            f"the configuration of {stack} has encrypted values, which a rehearsal without credentials cannot read: "
            f"{', '.join(hidden)}. None of this project's settings is secret: write them in clear"
        )
    own = {key.removeprefix(f"{NAMESPACE}:"): value for key, value in config.items() if key in _keys(config)}
    copier = _Copier(own, names, directory, seed)
    changed = copier.changed()
    settings = _settings(stack, changed)
    rest = {key: value for key, value in config.items() if key not in _keys(config)}
    whole = {**rest, **{f"{NAMESPACE}:{key}": value for key, value in changed.items()}}
    left_out = (*(f"{key}: encrypted, and no key of this project" for key in foreign), *copier.left_out)
    return Copied(stack, {"config": whole}, settings, copier.documents, left_out)


class _Copier:
    def __init__(self, config: dict[str, Any], names: Names, directory: Path, seed: int) -> None:
        self.documents: dict[str, str] = {}
        self.left_out: list[str] = []
        self._config = config
        self._names = names
        self._directory = directory
        self._seed = seed

    def changed(self) -> dict[str, Any]:
        config: dict[str, Any] = self._with_local_ids(self._config)
        cloud = CLOUDS.get(str(config.get("cloud", DEFAULT_CLOUD)))
        config.pop("backend", None)
        config |= {"cloud": LOCAL_CLOUD, "tenantId": LOCAL_TENANT_ID, "subscriptionId": LOCAL_SUBSCRIPTION_ID}
        if isinstance(shared := config.get(_SHARED), str) and shared:
            bare = shared.rpartition("/")[2]
            if bare not in self._names.stacks:
                raise CommandError(f"sharedStack names {bare}, which has no Pulumi.{bare}.yaml to rehearse with")
            config[_SHARED] = f"organization/{NAMESPACE}/{self._names.local(bare)}"
        if isinstance(user := config.get("keyVaultUser"), dict) and user.get("source") == "created":
            self.left_out.append("keyVaultUser: it is on the nodes as soon as it exists, without a command for that")
        self._cluster(config.get("managementCluster"))
        self._propagation(config)
        for index, hosted in enumerate(_list(config.get("hostedClusters"))):
            self._hosted(hosted, ("hostedClusters", index), cloud)
        return config

    def _with_local_ids(self, value: Any, place: Place = ()) -> Any:
        """The value with the local subscription in each resource id, and made-up ids for placeholders of zeros."""
        if isinstance(value, dict):
            return {key: self._with_local_ids(each, (*place, key)) for key, each in value.items()}
        if isinstance(value, list):
            return [self._with_local_ids(each, (*place, index)) for index, each in enumerate(value)]
        if not isinstance(value, str):
            return value
        parts = value.split("/")
        if len(parts) > 2 and parts[0] == "" and parts[1].lower() == _SUBSCRIPTIONS:
            return "/".join(["", parts[1], LOCAL_SUBSCRIPTION_ID, *parts[3:]])
        if _is_placeholder(value, 36):
            return str(self._stand_in(path_of(place)))
        return value

    def _stand_in(self, what: str) -> uuid.UUID:
        """The same one at base and head, for the same seed."""
        return uuid.uuid5(uuid.NAMESPACE_URL, f"{self._seed} {what}")

    def _cluster(self, cluster: Any) -> None:
        """The stack signs in as the local deployer, by the kubeconfig that the local AKS hands out."""
        if not isinstance(cluster, dict):
            return
        access = cluster.pop("access", None) or {}
        file = cluster.pop("kubeconfig", None)
        cluster.pop("context", None)
        if file or access.get("login", LoginKind.ARM) != LoginKind.ARM:
            self.left_out.append("managementCluster: the stack signs in to the cluster as the local deployer does")

    def _propagation(self, config: dict[str, Any]) -> None:
        credentials = config.setdefault("credentials", {})
        if not isinstance(credentials, dict):
            return
        propagation = credentials.setdefault("propagation", {})
        if isinstance(propagation, dict):
            for key, most in (("settleSeconds", _SETTLE), ("successes", _SUCCESSES)):
                given = propagation.get(key)
                propagation[key] = min(given, most) if isinstance(given, int) else most

    def _hosted(self, hosted: Any, place: Place, cloud: Cloud | None) -> None:
        if not isinstance(hosted, dict):
            return
        if isinstance(kms := hosted.get("kms"), dict):
            self._kms(kms, (*place, "kms"), cloud)
        for identity_field, identity in (hosted.get("identities") or {}).items():
            if isinstance(identity, dict):
                self._credential(identity, hosted.get("name"), identity_field, place)
        if hosted.get("issuer") != "create" and hosted.pop("serviceAccountSigningKey", None):
            self.left_out.append(f"{path_of((*place, 'serviceAccountSigningKey'))}: another's key and issuer")
        for workload in _list(hosted.get("workloads")):
            if isinstance(workload, dict):
                workload |= {"command": _PLACEHOLDER, "args": []}

    def _kms(self, kms: dict[str, Any], place: Place, cloud: Cloud | None) -> None:
        suffix = cloud.vault_suffix if cloud else None
        if (kms.get("keyVaultType") or key_vault_type_of(kms.get("activeKey"))) == "ManagedHSM":
            # The local cloud has none. HyperShift's side is the same; the role is then one on a vault.
            suffix = cloud.managed_hsm_suffix if cloud else None
            kms.pop("keyVaultType", None)
            self.left_out.append(f"{path_of(place)}: its managed HSM is a vault, on which the role is assigned by ARM")
        for key in ("activeKey", "backupKey"):
            if key in kms:
                kms[key] = self._key(kms[key], suffix)

    def _key(self, key: Any, vault_suffix: str | None) -> Any:
        """A key of the local cloud, whose vaults have the public cloud's names."""
        if isinstance(key, dict):
            made = self._stand_in(f"{key.get('keyVaultName')}/{key.get('keyName')}").hex
            return {**key, **({"keyVersion": made} if _is_placeholder(key.get("keyVersion"), 32) else {})}
        if not isinstance(key, str):
            return key
        url, suffix = urlsplit(key), CLOUDS[DEFAULT_CLOUD].vault_suffix
        host = url.netloc.removesuffix(f".{vault_suffix}")
        path, _, version = url.path.rpartition("/")
        if _is_placeholder(version, 32):
            version = self._stand_in(f"{host}/{path.rpartition('/')[2]}").hex
        return f"{url.scheme}://{host}.{suffix}{path}/{version}" if host != url.netloc else key

    def _credential(self, identity: dict[str, Any], cluster: Any, name: str, place: Place) -> None:
        credential, resource = identity.get("credential"), identity.get("resourceId")
        if not isinstance(credential, dict) or not isinstance(resource, str):
            return
        if "secretName" in credential:
            # The rehearsal's vault is new: what was stored in it before the stack is handed over as a file.
            self.left_out.append(f"{path_of((*place, 'identities', name))}: its stored secret is written by the stack")
            identity.setdefault("secretName", credential["secretName"])
        file = self._directory / f"{cluster}-{name}.json"
        identity["credential"] = {"file": str(file)}
        self.documents[str(file)] = resource


def _settings(stack: str, config: Mapping[str, Any]) -> Settings:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    try:
        return load_settings(texts, secret_keys=(), local=local_cloud.NOWHERE, written=config)
    except ConfigurationError as error:
        raise CommandError(for_stack(f"{stack}: {error}", stack)) from None


def _keys(config: Mapping[str, Any]) -> set[str]:
    return {key for key in config if key.startswith(f"{NAMESPACE}:")}


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


def _is_placeholder(value: Any, length: int) -> bool:
    return isinstance(value, str) and len(value) == length and set(value) <= {_ZEROS, "-"}


def _secrets(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where a value is encrypted (`secure: <cipher text>`)."""
    if isinstance(value, dict):
        if value.keys() == {_SECURE}:
            yield place
            return
        for key, each in value.items():
            yield from _secrets(each, (*place, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _secrets(each, (*place, index))
