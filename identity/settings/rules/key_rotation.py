"""The roles that the KMS plugin still needs while the key that encrypts etcd changes.

In a key vault the role is on the vault with all its keys; in a managed HSM it is on each key.

HyperShift decrypts with the previous key until it has re-encrypted all data. It records its progress in the
HostedCluster's `status.secretEncryption`: `activeKey` has encrypted everything, `targetKey` is the next one, which is
gone once `history[0].state` is Completed. Sources inside openshift/hypershift at 3ee9615:
api/hypershift/v1beta1/hostedcluster_types.go:2467-2487,
control-plane-operator/hostedclusterconfigoperator/controllers/reencryption/reencryption.go:108-180,440-460.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from identity.outputs import EncryptionKeys, KmsKeySpec, StackOutputs, encryption_key_secret, encryption_keys
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.kms import KmsSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import Place, Problem, to_remove, to_set, value_at

_KEYS: Final = ("activeKey", "targetKey")
_STATUS: Final = ("status", "secretEncryption")


def moved_keys(settings: Settings, outputs: StackOutputs[Any]) -> Iterator[Problem]:
    """The clusters whose active key moves to another vault or HSM key and is not kept as the backup key.

    `outputs` are those of the last complete run. A cluster that drops KMS loses the credential of its identity
    (`credential_loss.py`).
    """
    for index, cluster in enumerate(settings.hosted_clusters):
        last = encryption_keys(outputs, cluster.name)
        if cluster.kms is None or last is None or _keeps(cluster.kms, last["activeKey"]):
            continue
        place: Place = ("hostedClusters", index, "kms", "backupKey")
        before, active = last["activeKey"], cluster.kms.active_key
        group = (
            "" if _is_in(active.key_vault_name, before) else ", and the vault's group as backupKeyVaultResourceGroup"
        )
        yield Problem(
            place=place,
            rule="kms-key-moved",
            found=f"{_none_there(cluster.kms, before)}, which has the key that encrypts etcd, while "
            f"activeKey moves to {cluster.kms.place_of(active.key_vault_name, active.key_name)}",
            accepted="the previous key, until HyperShift has re-encrypted everything: it needs its role on both "
            f"{'keys' if cluster.kms.is_managed_hsm else 'vaults'}",
            fix=f"{to_set(place, _url(settings, cluster.kms, before))}{group}",
        )


def dropped_keys(settings: Settings, outputs: StackOutputs[Any]) -> Iterator[Problem]:
    """The clusters whose etcd is encrypted with a key of the stack that the configuration no longer has.

    HyperShift decrypts with keys of one kind alone (openshift/hypershift at 3ee9615,
    control-plane-operator/controllers/hostedcontrolplane/v2/kas/secretencryption.go:48-65).
    """
    for index, cluster in enumerate(settings.hosted_clusters):
        last = encryption_key_secret(outputs, cluster.name)
        if last is None or cluster.encryption_key_secret == last:
            continue
        place: Place = ("hostedClusters", index)
        written = cluster.hosted_cluster
        if cluster.kms is not None:
            at, encryption, fix = (*place, "kms"), "a key in Azure", to_remove((*place, "kms"))
        elif written is not None and written.etcd_encryption == "none":
            at = (*place, "hostedCluster", "etcdEncryption")
            encryption, fix = "none", to_remove(at)
        else:
            at = (*place, "hostedCluster", "releaseImage")
            encryption, fix = "nothing", to_set(at, "<image>")
        yield Problem(
            place=at,
            rule="etcd-encryption-changed",
            found=f"{encryption}, while the etcd of {cluster.name} is encrypted with the key in the Secret {last}",
            accepted="that key as long as the HostedCluster exists: without it nobody can read its etcd",
            fix=fix,
        )


def dropped_places(cluster: HostedClusterSettings, last: EncryptionKeys | None) -> list[str]:
    """The vaults, or keys in HSMs, that lose the role, compared with the keys of the last complete run."""
    if cluster.kms is None or last is None:
        return []
    before = [last["activeKey"], *([last["backupKey"]] if "backupKey" in last else [])]
    return [_place(cluster.kms, key) for key in before if not _keeps(cluster.kms, key)]


def unfinished(settings: Settings, index: int, hosted_cluster: Mapping[str, Any]) -> Iterator[Problem]:
    """The role that HyperShift still needs according to the HostedCluster, and that the configuration would remove."""
    cluster = settings.hosted_clusters[index]
    kms = cluster.kms
    if kms is None:
        return
    place: Place = ("hostedClusters", index, "kms")
    status = value_at(hosted_cluster, _STATUS)
    # HyperShift may begin with it at any moment.
    written: KmsKeySpec | None = value_at(hosted_cluster, ("spec", "secretEncryption", "kms", "azure", "activeKey"))
    needed = {f"status.secretEncryption.{name}": key for name in _KEYS if (key := value_at(status, (name, "azure")))}
    if written is not None:
        needed["spec.secretEncryption.kms.azure.activeKey"] = written
    state = value_at(status, ("history", 0, "state"))
    progress = f" (its rotation is {state})" if state else ""
    for where, key in needed.items():
        if not _keeps(kms, key):
            at = (*place, "backupKey")
            yield Problem(
                place=at,
                rule="kms-rotation-unfinished",
                found=f"{_none_there(kms, key)}, but HyperShift still uses the one there: {where}{progress}",
                accepted="that key, until status.secretEncryption of the HostedCluster no longer names it",
                fix=f"{to_set(at, _url(settings, kms, key))}; remove it once history[0].state is Completed",
            )
            return
    is_tracked = value_at(status, ("activeKey",)) is not None
    if written is not None and not is_tracked and not _is_in(kms.active_key.key_vault_name, written):
        at = (*place, "activeKey")
        yield Problem(
            place=at,
            rule="kms-rotation-untracked",
            found=f"a key in {kms.active_key.key_vault_name}, but this HyperShift does not record the previous key "
            "(status.secretEncryption.activeKey), and accepts no backup key in another vault",
            accepted=f"a key in {written['keyVaultName']}",
            fix=f"{to_set(at, _url(settings, kms, written))}, or bring HyperShift's operator up to date first",
        )


def finished(settings: Settings, index: int, hosted_cluster: Mapping[str, Any]) -> str | None:
    """The message that the backup key may be removed; None as long as it is needed, or if there is none."""
    cluster, status = settings.hosted_clusters[index], value_at(hosted_cluster, _STATUS)
    kms, active = cluster.kms, value_at(status, ("activeKey", "azure"))
    if kms is None or kms.backup_key is None or active is None or value_at(status, ("targetKey",)):
        return None
    if active != kms.active_key.model_dump(by_alias=True):
        return None
    return (
        f"HyperShift has encrypted the etcd of {cluster.name} with the active key: "
        f"{to_remove(('hostedClusters', index, 'kms', 'backupKey'))} removes the role on the previous "
        f"{'key' if kms.is_managed_hsm else 'vault'}"
    )


def _keeps(kms: KmsSettings, key: KmsKeySpec) -> bool:
    kept = {kms.place_of(key.key_vault_name, key.key_name).lower() for key in kms.keys}
    return _place(kms, key).lower() in kept


def _place(kms: KmsSettings, key: KmsKeySpec) -> str:
    return kms.place_of(key["keyVaultName"], key["keyName"])


def _none_there(kms: KmsSettings, key: KmsKeySpec) -> str:
    return f"no key {'at' if kms.is_managed_hsm else 'in'} {_place(kms, key)}"


def _is_in(vault: str, key: KmsKeySpec) -> bool:
    return vault.lower() == key["keyVaultName"].lower()


def _url(settings: Settings, kms: KmsSettings, key: KmsKeySpec) -> str:
    suffix = settings.cloud.managed_hsm_suffix if kms.is_managed_hsm else settings.cloud.vault_suffix
    return f"https://{key['keyVaultName']}.{suffix}/keys/{key['keyName']}/{key['keyVersion']}"
