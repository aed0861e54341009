"""The Secrets Store CSI driver's part of a mount (`pkg/secrets-store/nodeserver.go`), and a pod's tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, Final, cast

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from localcloud.azure.keyvault.secrets import Secrets, Vaults
from localcloud.azure.resource_store import Resources
from localcloud.azure.tenant.tokens import key_id
from localcloud.core import clock
from localcloud.core.state_directory import StateDirectory
from localcloud.kubelet.azure_provider import AzureProvider, MountedObject, ProviderError
from localcloud.kubelet.client import POD_STATUSES, SECRET_PROVIDER_CLASSES, ApiClient
from localcloud.kubelet.cluster import ClusterCache, Key, key_of
from localcloud.kubernetes.calls import ApiError, Object

DRIVER: Final = "secrets-store.csi.k8s.io"
_CONFLICT: Final = 409
_NODE_LABEL: Final = "internal.secrets-store.csi.k8s.io/node-name"


class MountError(Exception):
    """A volume that cannot be set up now; the message goes into the FailedMount event."""


def class_of(volume: dict[str, Any]) -> str:
    """The name of the SecretProviderClass that a csi volume names, empty without one."""
    name: str = volume["csi"].get("volumeAttributes", {}).get("secretProviderClass", "")
    return name


async def fetch(
    cluster: ClusterCache, provider: AzureProvider, pod: Object, volume: dict[str, Any]
) -> list[MountedObject]:
    """The files of a csi volume. Raises `MountError` with the driver's or the provider's message."""
    source = volume["csi"]
    if source.get("driver") != DRIVER:
        raise _rpc(
            "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: "
            f"driver name {source.get('driver')} not found in the list of registered CSI drivers"
        )
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    class_name = class_of(volume)
    if not class_name:
        raise _rpc("secretProviderClass is not set")
    if not source.get("readOnly"):
        raise _rpc("Readonly is not true in request", code="InvalidArgument")
    document = await cluster.find(SECRET_PROVIDER_CLASSES, namespace, class_name)
    if document is None:
        raise _rpc(
            f"failed to get secretproviderclass {namespace}/{class_name}, error: "
            f'SecretProviderClass.secrets-store.csi.x-k8s.io "{class_name}" not found'
        )
    spec = document.get("spec", {})
    if not spec.get("provider"):
        raise _rpc(f"provider not set in {namespace}/{class_name}")
    if not spec.get("parameters"):
        raise _rpc(f"parameters not set in {namespace}/{class_name}")
    failed = f"failed to mount secrets store objects for pod {namespace}/{name}, err:"
    if spec["provider"] != "azure":
        raise _rpc(
            f'{failed} error connecting to provider "{spec["provider"]}": '
            f'provider not found: provider "{spec["provider"]}"'
        )
    try:
        files = await provider.mount(spec["parameters"])
    except ProviderError as error:
        raise _rpc(f"{failed} rpc error: code = Unknown desc = failed to mount objects, error: {error}") from None
    if not files:
        raise _rpc(f"{failed} missing object versions")
    return files


async def report(
    client: ApiClient, pod: Object, volume: dict[str, Any], target: str, versions: Sequence[tuple[str, str]]
) -> None:
    """Write the pod's SecretProviderClassPodStatus: which version of which object it has mounted. Raises `ApiError`."""
    namespace, status_name = _status(pod, volume)
    name = pod["metadata"]["name"]
    status = {
        "podName": name,
        "secretProviderClassName": class_of(volume),
        "mounted": True,
        "targetPath": target,
        "objects": [{"id": uid, "version": version} for uid, version in versions],
    }
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
    metadata = {
        "name": status_name,
        "namespace": namespace,
        "labels": {_NODE_LABEL: pod["spec"]["nodeName"]},
        "ownerReferences": [owner],
    }
    try:
        await client.create(POD_STATUSES, namespace, {"metadata": metadata, "status": status})
    except ApiError as error:
        if error.code != _CONFLICT:
            raise
        await client.merge(POD_STATUSES, namespace, status_name, {"metadata": metadata, "status": status})


async def forget(client: ApiClient, pod: Object, volume: dict[str, Any]) -> None:
    """Delete the SecretProviderClassPodStatus of a deleted pod. Raises `ApiError`."""
    await client.delete(POD_STATUSES, *_status(pod, volume))


def _status(pod: Object, volume: dict[str, Any]) -> Key:
    """Namespace and name of the SecretProviderClassPodStatus."""
    namespace, name = key_of(pod)
    return namespace, f"{name}-{namespace}-{class_of(volume)}"


def _rpc(text: str, *, code: str = "Unknown") -> MountError:
    return MountError(f"rpc error: code = {code} desc = {text}")


# Tokens of a hosted cluster's service accounts, instead of HyperShift's `token-minter`.
#
# That sidecar asks the API server of the hosted cluster for a token and writes it into a volume of its pod (hypershift
# `token-minter/tokenminter.go`). No such server runs here: a volume of this driver names the cluster's signing key,
# which the local cloud takes out of its own vault, and the kubelet signs. No container sees the key.

HOSTED_TOKENS_DRIVER: Final = "hosted-cluster-tokens.localcloud"
_KEYS: Final = ("vaultName", "secretName", "issuer", "subject", "audience", "path")


class HostedClusterTokens:
    """Signs the tokens of one pod's volumes, and renews each before it expires."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._known: dict[tuple[str, ...], tuple[str, datetime]] = {}

    def current(self, attributes: Mapping[str, str]) -> tuple[str, str]:
        """The file's path in the volume, and the token.

        `attributes` name the signing key (`vaultName`, `secretName`), the claims (`issuer`, `subject`, `audience`) and
        the file (`path`). Raises `MountError`.
        """
        if missing := [key for key in _KEYS if not attributes.get(key)]:
            raise MountError(f"volumeAttributes without {', '.join(missing)}")
        asked = tuple(attributes[key] for key in _KEYS)
        token, until = self._known.get(asked, ("", clock.now()))
        if until <= clock.now():
            token = _signed(self._key(attributes["vaultName"], attributes["secretName"]), attributes)
            self._known[asked] = token, clock.now() + timedelta(seconds=LIFETIME) * RENEWED_AT
        return attributes["path"], token

    def _key(self, vault_name: str, secret_name: str) -> RSAPrivateKey:
        with closing(self._state.open_store()) as store:
            vault = Vaults(Resources(store)).named(vault_name)
            secret = Secrets(store).find(vault, secret_name) if vault else None
            if secret is None:
                raise MountError(f"the vault {vault_name} has no signing key {secret_name}")
            pem = Secrets(store).value(secret.current)
        try:
            return cast(RSAPrivateKey, load_pem_private_key(pem.encode(), password=None))
        except ValueError:
            raise MountError(f"the secret {secret_name} in the vault {vault_name} is not a private key") from None


def _signed(key: RSAPrivateKey, attributes: Mapping[str, str]) -> str:
    """A token with the claims and the key id of kube-apiserver (kubernetes `pkg/serviceaccount/jwt.go`)."""
    now = clock.now()
    claims = {
        "iss": attributes["issuer"],
        "sub": attributes["subject"],
        "aud": [attributes["audience"]],
        "iat": now,
        "nbf": now,
        "exp": now + timedelta(seconds=LIFETIME),
    }
    return jwt.encode(claims, key, algorithm="RS256", headers={"kid": key_id(key)})


# Seconds, and a share of them: the API server's own default, and the kubelet's rule for renewals (kubernetes
# `pkg/kubelet/token/token_manager.go`).
LIFETIME: Final = 3600
RENEWED_AT: Final = 0.8
_OLDEST: Final = timedelta(hours=24)


class ServiceAccountTokens:
    """Requests the pod's tokens, and renews each before it expires."""

    def __init__(self, client: ApiClient, pod: Object) -> None:
        self._client = client
        self._pod = pod
        self._known: dict[tuple[str, int], tuple[str, datetime]] = {}

    async def current(self, source: Mapping[str, Any]) -> str:
        """The token for a volume's `serviceAccountToken`; raises `MountError` if none can be requested."""
        audience, lifetime = source.get("audience", ""), source.get("expirationSeconds", LIFETIME)
        token, until = self._known.get((audience, lifetime), ("", clock.now()))
        if clock.now() < until:
            return token
        metadata = self._pod["metadata"]
        spec = {
            "audiences": [audience] if audience else [],
            "expirationSeconds": lifetime,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]},
        }
        account = self._pod["spec"].get("serviceAccountName", "default")
        try:
            status = await self._client.create_token(metadata["namespace"], account, spec)
        except ApiError as error:
            raise MountError(f"failed to fetch token: {error}") from None
        kept = min(timedelta(seconds=lifetime) * RENEWED_AT, _OLDEST)
        token = str(status["token"])
        self._known[audience, lifetime] = token, clock.now() + kept
        return token
