"""One secret of a Key Vault: its metadata and its writes by ARM, its versions by the vault itself.

ARM shows everything but the value, to a Reader, and writes without access to the values. It knows neither versions nor
deletion (azure-rest-api-specs keyvault 2024-11-01, secrets.json), so those are requests to the vault.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self, cast

from identity import resource_types
from identity.azure.client import AzureClient, AzureObject
from identity.azure.errors import AccessError, AzureRefusedError
from identity.azure.records import SecretMetadata
from identity.credentials.rfc3339 import utc_now
from identity.credentials.secret_tags import OWNER
from identity.naming import parse_arm_id, secret_id, vault_id
from identity.plugin_schema import SecretAddresses, VaultAddress
from plugin import PluginError, Props
from provider import cloud

_TYPE: Final = "Microsoft.KeyVault/vaults/secrets"
# Versions that a creation of this process found in a vault: their secrets are another resource's from then on.
TAKEN_OVER: Final[set[str | None]] = set()


@dataclass(frozen=True)
class SecretReading:
    """The current version of a secret (None if there is none), and when it was read by ARM's clock and by ours."""

    metadata: SecretMetadata | None
    azure_time: datetime | None  # None if ARM's answer has no date
    local_time: datetime


@dataclass(frozen=True)
class VaultSecret:
    """The secret called `name` in a vault (`vault_id`, an ARM id). Every method raises AzureRefusedError."""

    azure: AzureClient
    vault_id: str
    name: str

    @classmethod
    def of(cls, inputs: VaultAddress) -> Self:
        """The secret that a resource's inputs name: `cloud`, `tenantId`, `vaultId`, `secretName`."""
        return cls(cloud.client(inputs["cloud"], inputs["tenantId"]), inputs["vaultId"], inputs["secretName"])

    @property
    def id(self) -> str:
        """The secret's ARM id."""
        return secret_id(self.vault_id, self.name)

    def metadata(self) -> SecretMetadata | None:
        """The current version, None if there is no such secret, vault or resource group."""
        return self.read().metadata

    def read(self) -> SecretReading:
        """The current version, and when it was read."""
        answer = self.azure.resource_with_date(self.id, resource_types.KEY_VAULT_API)
        metadata = None if answer.body is None else SecretMetadata.of(answer.body)
        return SecretReading(metadata, answer.date, utc_now())

    def value(self) -> str:
        """The current version's value, from the vault itself, which needs a role that reads secrets (Key Vault Secrets
        Officer). A missing secret raises AzureRefusedError, too.
        """
        answer = self.azure.vault(self.vault, "GET", f"/secrets/{self.name}")
        if answer is None:
            raise AzureRefusedError(f"{self.id} does not exist; recover it, or correct its name")
        return str(answer["value"])

    def write(self, properties: Mapping[str, Any], tags: Mapping[str, str]) -> SecretMetadata:
        """Add a version; `properties` with its value."""
        return self._changed("PUT", properties, tags)

    def amend(self, properties: Mapping[str, Any], tags: Mapping[str, str]) -> SecretMetadata:
        """Change the current version, but not its value."""
        return self._changed("PATCH", properties, tags)

    def disable_all_but(self, current: str, before: str) -> None:
        """Disable every version but `current` and the one `before`, which pods may still mount for a moment.

        After a run that was cut short, `before` is the current one, and the newest of the others stays.
        """
        kept = {current, before}
        listed = self.azure.vault_list(self.vault, f"/secrets/{self.name}/versions")
        versions = [version for version in listed if _version(version) not in kept]
        if len(kept) == 1:
            versions = sorted(versions, key=lambda version: int(version["attributes"]["created"]))[:-1]
        for version in versions:
            if version["attributes"].get("enabled", True):
                path = f"/secrets/{self.name}/{_version(version)}"
                self.azure.vault(self.vault, "PATCH", path, {"attributes": {"enabled": False}})

    def delete(self, version: str | None) -> None:
        """Delete the secret with all its versions; the vault keeps it for its retention period.

        Not if a new resource took over the `version` of this one, which it replaces: both are the same secret.
        """
        if version not in TAKEN_OVER:
            self.azure.vault(self.vault, "DELETE", f"/secrets/{self.name}")

    @property
    def vault(self) -> str:
        """The vault's name."""
        return parse_arm_id(self.vault_id).name

    def _changed(self, verb: str, properties: Mapping[str, Any], tags: Mapping[str, str]) -> SecretMetadata:
        body = {"properties": dict(properties), "tags": dict(tags)}
        changed = self.azure.change_resource(verb, self.id, resource_types.KEY_VAULT_API, body)
        if changed is None:
            raise AzureRefusedError(
                f"{self.id} cannot be written: its vault does not exist; create it, or correct its name"
            )
        return SecretMetadata.of(changed)


def _version(version: AzureObject) -> str:
    return str(version["id"]).rstrip("/").rpartition("/")[2]


def inputs_of_import(id: str) -> Props:
    """The place of a secret that an import's id names: an ARM id alone says neither cloud nor tenant."""
    cloud_name, _, rest = id.partition("/")
    tenant_id, slash, arm_id = rest.partition("/")
    try:
        secret = parse_arm_id(slash + arm_id)
    except ValueError:
        secret = None
    if secret is None or secret.type != _TYPE:
        raise PluginError(
            f"found another id; accepted: <cloud>/<tenant id>/subscriptions/.../{_TYPE}, the ARM id of a secret"
        )
    vault = vault_id(secret.subscription, secret.resource_group, secret.names[0])
    return {"cloud": cloud_name, "tenantId": tenant_id, "vaultId": vault, "secretName": secret.names[1]}


# ARM refills 25 reads a second for each subscription and deployer (request-limits-and-throttling, 2024).
_AT_ONCE: Final = 16


class SecretPrefetch:
    """The reads in progress, by address."""

    def __init__(self) -> None:
        self._started: dict[str, Future[SecretReading]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="prefetch")

    def start(self, args: SecretAddresses) -> None:
        """Start to read every secret of `secretNames`; does not wait for the answers."""
        with self._lock:
            for name in args["secretNames"]:
                address = cast(VaultAddress, {**args, "secretName": name})
                self._started[_key(address)] = self._pool.submit(_read, address)

    def get(self, address: VaultAddress) -> SecretReading:
        """The secret at an address: prefetched if possible, otherwise read now.

        A prefetched result serves once, and a failed one is read again. Raises AccessError; `PluginError` for an
        unknown cloud.
        """
        with self._lock:
            prefetched = self._started.pop(_key(address), None)
        if prefetched is not None:
            try:
                return prefetched.result()
            except (AccessError, PluginError):
                pass
        return _read(address)


def _read(address: VaultAddress) -> SecretReading:
    return VaultSecret.of(address).read()


def _key(address: VaultAddress) -> str:
    return secret_id(address["vaultId"], address["secretName"])


OWNER_ID: Final = "ownerId"


def kept_owner(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Mapping[str, Any]:
    """The new inputs, with the previous owner id where they have none: a run that only renews does not know it."""
    if old is None or OWNER_ID in new or OWNER_ID not in old:
        return new
    return {**new, OWNER_ID: old[OWNER_ID]}


def refuse_foreign(urn: str, current: SecretMetadata | None, *known: Mapping[str, Any]) -> None:
    """Raise `PluginError` if the secret has the owner id of another stack; a secret without the tag passes.

    Args:
        known: the new and the previous inputs. A cluster that has moved here has the id of its former stack until the
            first write.
    """
    owner = None if current is None else current.tags.get(OWNER)
    if current is None or owner is None or owner in [inputs.get(OWNER_ID) for inputs in known]:
        return
    stack = urn.split("::")[0].rpartition(":")[2]
    raise PluginError(
        f"{current.id} was not written: it carries the owner id {owner}, which is another stack's; accepted: a secret "
        f"of this stack ({known[0].get(OWNER_ID, 'without an owner id')}). Give the hosted cluster or its secret "
        f"another name. Only if no stack has it, because this one lost its state or was destroyed since: "
        f"`.venv/bin/idstack recover --stack {stack} --owner {owner}` makes it this stack's again"
    )
