"""A stack's configuration, copied for the local cloud, and the names of the stacks there.

The copy replaces tenant, subscription, cloud, backend, secrets provider, sign-ins, and documents issued elsewhere.
Everything else is the stack's own, and so is the plan.
"""

from __future__ import annotations

import copy
import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from identity.clouds import CLOUDS, DEFAULT_CLOUD, LOCAL_CLOUD, LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from identity.login_kinds import LoginKind
from identity.settings import ConfigurationError, Settings
from identity.settings.schema.kms import key_vault_type_of
from identity.settings.schema.problems import NAMESPACE, Place, for_stack, path_of
from identity.settings.stack_file import own_values
from ops.stack import local_cloud
from ops.stack.configuration import has_secret, secrets, shared_stack_of
from ops.stack.environment import LOCAL_STACK, is_local
from ops.stack.errors import CommandError, message
from ops.stack.settings import validated

_SHARED: Final = "sharedStack"
# The slowest replica of the local Entra ID lags by 1.5 seconds.
_SETTLE: Final = 2
_SUCCESSES: Final = 5
# The command of a user's own workload: the local kubelet runs processes of this machine, not images.
_PLACEHOLDER: Final = ["sleep", "infinity"]


def local_names(stacks: Collection[str]) -> dict[str, str]:
    """The names in the rehearsal by the stacks' own; a local stack keeps its name.

    The others are `local-<name>`, with a number to make it unique.
    """
    names = {name: name for name in stacks if is_local(name)}
    for stack in (name for name in stacks if name not in names):
        stem = name = "-".join([LOCAL_STACK, *re.findall("[a-z0-9]+", stack.lower())])
        number = 2
        while name in names.values():
            name, number = f"{stem}-{number}", number + 1
        names[stack] = name
    return names


def with_own_names(text: str, names: Mapping[str, str]) -> str:
    """The text with the stacks' own names in place of the rehearsal's."""
    for stack, name in sorted(names.items(), key=lambda pair: -len(pair[1])):
        text = text.replace(name, stack)
    return text


@dataclass(frozen=True)
class StackCopy:
    """The copy of one stack's configuration.

    `name` is the stack's in the rehearsal, `document` the stack file for the engine, `settings` are the typed settings.
    `documents` has the ARM id of a managed identity by the path at which the local MSI data plane issues its document.
    `left_out` names what the rehearsal cannot show.
    """

    stack: str
    name: str
    document: Mapping[str, Any]
    settings: Settings
    documents: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def shared_stack(self) -> str | None:
        named = self.settings.shared_stack
        return None if named is None else named.rpartition("/")[2]


def family(stack: str, configurations: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """The stacks that are rehearsed together: `stack`, its shared stack before it, and the stacks that share it.

    Empty if there is no such stack.
    """
    if stack not in configurations:
        return ()
    shared = shared_stack_of(own_values(configurations[stack]))
    first = [shared] if shared is not None and shared in configurations else []
    others = (name for name, document in configurations.items() if shared_stack_of(own_values(document)) == stack)
    return tuple(dict.fromkeys([*first, stack, *others]))


def families(
    stack: str, before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The families of `stack` at base and head, by the files of both.

    The family of a new stack has at the base the members that exist there: their clusters may move to the new stack.
    """
    at_head = family(stack, after)
    return family(stack, before) or tuple(name for name in at_head if name in before), at_head


def copy_configuration(
    stack: str, document: Mapping[str, Any], names: Mapping[str, str], directory: Path, seed: int
) -> StackCopy:
    """Copy a stack's configuration; documents of managed identities will be in `directory`.

    Leaves out encrypted values of other namespaces: they are for default providers, which every stack disables. Raises
    CommandError for a configuration that the program refuses, and for encrypted values of this project.
    """
    config = copy.deepcopy(dict(document.get("config") or {}))
    prefix = f"{NAMESPACE}:"
    foreign = sorted(key for key in config if not key.startswith(prefix) and has_secret(config[key]))
    for key in foreign:
        del config[key]
    if hidden := [path_of(place) for place in secrets(config)]:
        raise CommandError(message("configuration.encrypted", stack=stack, places=", ".join(hidden)))
    own = {key.removeprefix(prefix): config.pop(key) for key in list(config) if key.startswith(prefix)}
    copier = _Copier(own, names, directory, seed)
    changed = copier.changed()
    try:
        settings = validated(changed, local_cloud.PLACEHOLDER)
    except ConfigurationError as error:
        copied, meant = (f"are at {cloud.vault_suffix}" for cloud in (CLOUDS[DEFAULT_CLOUD], copier.cloud))
        raise CommandError(for_stack(f"{stack}: {error}".replace(copied, meant), stack)) from None
    whole = {**config, **{f"{prefix}{key}": value for key, value in changed.items()}}
    left_out = (*(f"{key}: encrypted, and not a key of this project" for key in foreign), *copier.left_out)
    return StackCopy(stack, names[stack], {"config": whole}, settings, copier.documents, left_out)


@dataclass
class _Copier:
    config: dict[str, Any]
    names: Mapping[str, str]
    directory: Path
    seed: int
    documents: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cloud = CLOUDS.get(str(self.config.get("cloud")), CLOUDS[DEFAULT_CLOUD])

    def changed(self) -> dict[str, Any]:
        config: dict[str, Any] = self._with_local_ids(self.config)
        config.pop("backend", None)
        config |= {"cloud": LOCAL_CLOUD, "tenantId": LOCAL_TENANT_ID, "subscriptionId": LOCAL_SUBSCRIPTION_ID}
        if isinstance(shared := config.get(_SHARED), str) and shared:
            bare = shared.rpartition("/")[2]
            if bare not in self.names:
                raise CommandError(f"sharedStack names {bare}, which has no Pulumi.{bare}.yaml to rehearse with")
            config[_SHARED] = f"organization/{NAMESPACE}/{self.names[bare]}"
        if _mapping(config.get("keyVaultUser")).get("source") == "created":
            self.left_out.append("keyVaultUser: it is attached to the nodes as soon as it exists, without a command")
        self._cluster(_mapping(config.get("managementCluster")))
        propagation = _mapping(_mapping(config.setdefault("credentials", {})).setdefault("propagation", {}))
        for key, maximum in (("settleSeconds", _SETTLE), ("successes", _SUCCESSES)):
            configured = propagation.get(key)
            propagation[key] = min(configured, maximum) if isinstance(configured, int) else maximum
        for index, hosted in enumerate(_list(config.get("hostedClusters"))):
            self._hosted(_mapping(hosted), ("hostedClusters", index))
        return config

    def _with_local_ids(self, value: Any, place: Place = ()) -> Any:
        """The value with the local subscription in each resource id, and generated ids for placeholders of zeros."""
        if isinstance(value, dict):
            return {key: self._with_local_ids(item, (*place, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._with_local_ids(item, (*place, index)) for index, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        parts = value.split("/")
        if len(parts) > 2 and parts[0] == "" and parts[1].lower() == "subscriptions":
            return "/".join(["", parts[1], LOCAL_SUBSCRIPTION_ID, *parts[3:]])
        if _is_placeholder(value, 36):
            return str(self._generated_id(path_of(place)))
        return value

    def _generated_id(self, name: str) -> uuid.UUID:
        """An id that depends on seed and name alone, so that it is the same at base and head."""
        return uuid.uuid5(uuid.NAMESPACE_URL, f"{self.seed} {name}")

    def _cluster(self, cluster: dict[str, Any]) -> None:
        """Let the stack sign in as the local deployer, with the kubeconfig of the local AKS."""
        access, file = _mapping(cluster.pop("access", None)), cluster.pop("kubeconfig", None)
        cluster.pop("context", None)
        if file or access.get("login", LoginKind.ARM) != LoginKind.ARM:
            self.left_out.append("managementCluster: the stack signs in to the cluster as the local deployer")

    def _hosted(self, cluster: dict[str, Any], place: Place) -> None:
        self._kms(_mapping(cluster.get("kms")), (*place, "kms"))
        for name, identity in _mapping(cluster.get("identities")).items():
            self._credential(_mapping(identity), cluster.get("name"), name, place)
        if cluster.get("issuer") != "create" and cluster.pop("serviceAccountSigningKey", None):
            self.left_out.append(f"{path_of((*place, 'serviceAccountSigningKey'))}: key and issuer of another owner")
        for workload in _list(cluster.get("workloads")):
            _mapping(workload).update(command=_PLACEHOLDER, args=[])

    def _kms(self, kms: dict[str, Any], place: Place) -> None:
        what, suffix = "vaults", self.cloud.vault_suffix
        if (kms.get("keyVaultType") or key_vault_type_of(kms.get("activeKey"))) == "ManagedHSM":
            # The local cloud has no managed HSM. HyperShift's part is the same; the role is one on a vault.
            what, suffix = "managed HSMs", self.cloud.managed_hsm_suffix
            kms.pop("keyVaultType", None)
            self.left_out.append(f"{path_of(place)}: its managed HSM is a vault, on which the role is assigned by ARM")
        for key in ("activeKey", "backupKey"):
            if key in kms:
                kms[key] = self._key(kms[key], what, suffix, (*place, key))

    def _key(self, key: Any, what: str, vault_suffix: str, place: Place) -> Any:
        """The key in the local cloud, whose vaults have the public cloud's names.

        Raises CommandError for a key of the public cloud's vaults that is not one of `what` in the stack's cloud.
        """
        if isinstance(key, dict):
            version_id = self._generated_id(f"{key.get('keyVaultName')}/{key.get('keyName')}").hex
            return {**key, **({"keyVersion": version_id} if _is_placeholder(key.get("keyVersion"), 32) else {})}
        if not isinstance(key, str):
            return key
        url, suffix = urlsplit(key), CLOUDS[DEFAULT_CLOUD].vault_suffix
        host = url.netloc.removesuffix(f".{vault_suffix}")
        if host == url.netloc and host.endswith(f".{suffix}"):
            raise CommandError(f"{path_of(place)}: found {key}, but the {what} of this cloud are at {vault_suffix}")
        path, _, version = url.path.rpartition("/")
        if _is_placeholder(version, 32):
            version = self._generated_id(f"{host}/{path.rpartition('/')[2]}").hex
        return f"{url.scheme}://{host}.{suffix}{path}/{version}" if host != url.netloc else key

    def _credential(self, identity: dict[str, Any], cluster: Any, name: str, place: Place) -> None:
        credential, resource = identity.get("credential"), identity.get("resourceId")
        if not isinstance(credential, dict) or not isinstance(resource, str):
            return
        if "secretName" in credential:
            # The rehearsal's vault is new: a secret that existed in it before is given to the stack as a file.
            self.left_out.append(f"{path_of((*place, 'identities', name))}: the stack writes its existing secret")
            identity.setdefault("secretName", credential["secretName"])
        file = self.directory / f"{cluster}-{name}.json"
        identity["credential"] = {"file": str(file)}
        self.documents[str(file)] = resource


def _mapping(value: Any) -> dict[str, Any]:
    """The mapping itself; an empty one for another value, which the program refuses."""
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


def _is_placeholder(value: Any, length: int) -> bool:
    return isinstance(value, str) and len(value) == length and set(value) <= {"0", "-"}
