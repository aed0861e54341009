"""Refuses a Secret with a signing key that HyperShift cannot read, before a HostedCluster names it.

HyperShift reads PKCS#1 alone (openshift/hypershift support/certs/tls.go:250-256) and says `ValidConfiguration` False of
everything else, once the cluster exists. Keys that the stack itself writes are in PKCS#1.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final

from components.azure.providers import Providers, management_cluster_id
from components.preflight.access_check import cluster_kubeconfig
from identity.aks.api_server import ApiServer
from identity.aks.azure_rbac import AksCluster
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.errors import AccessError
from identity.credentials.service_account_key import UnusableKeyError, is_read_by_hypershift
from identity.settings import ConfigurationError, Problem, Settings

_KEY: Final = "key"


async def check_signing_key_secrets(
    settings: Settings, providers: Providers, aks: AksCluster | None, kubeconfig: Kubeconfig | None
) -> None:
    """Look at the Secrets that somebody else made, as far as they are there and the deployer may read them.

    `aks` is the management cluster as ARM describes it, None if there is none, or none yet; `kubeconfig` is what AKS
    has given out for it, None if that was not asked. Raises ConfigurationError.
    """
    cluster, named = settings.management_cluster, _named(settings)
    if not named or cluster is None or (cluster.kubeconfig is None and aks is None):
        return
    try:
        kubeconfig = await cluster_kubeconfig(settings, cluster, providers, kubeconfig)
        server = AksCluster(management_cluster_id(settings, cluster))
        found = await asyncio.to_thread(_read, kubeconfig, server, cluster.context, named)
    except AccessError:
        return  # most deployers may read no Secret, and HyperShift says the same later
    problems = [each for index, secret in found.items() for each in _problems(index, *named[index], secret)]
    if problems:
        raise ConfigurationError(problems)


def _named(settings: Settings) -> dict[int, tuple[str, str]]:
    """Namespace and name of the Secret of each HostedCluster that the stack applies, by the cluster's index."""
    return {
        index: (cluster.namespace, cluster.hosted_cluster.service_account_signing_key)
        for index, cluster in enumerate(settings.hosted_clusters)
        if cluster.hosted_cluster is not None and cluster.hosted_cluster.service_account_signing_key is not None
    }


def _read(
    kubeconfig: Kubeconfig, aks: AksCluster, context: str | None, named: Mapping[int, tuple[str, str]]
) -> dict[int, dict[str, Any]]:
    with ApiServer(kubeconfig, aks, context=context) as server:
        found = {
            index: server.read(f"/api/v1/namespaces/{namespace}/secrets/{name}")
            for index, (namespace, name) in named.items()
        }
    return {index: secret for index, secret in found.items() if secret is not None}


def _problems(index: int, namespace: str, name: str, secret: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        pem = base64.b64decode((secret.get("data") or {}).get(_KEY) or "").decode()
        if is_read_by_hypershift(pem):
            return
        held = "an RSA key in another form than PKCS#1, such as the PKCS#8 that OpenSSL 3 writes"
        # By a file: a pipe would write an empty key if OpenSSL failed.
        read = f"kubectl --namespace {namespace} get secret {name} --output jsonpath='{{.data.{_KEY}}}'"
        converted = f"{read} | base64 --decode | openssl rsa -traditional -out {name}.pem"
        fix = f"`{converted} && {_write(namespace, name, f'{name}.pem')}`; then delete {name}.pem"
    except (binascii.Error, UnicodeDecodeError):
        held, fix = f"no text under {_KEY}", _make_anew(namespace, name)
    except UnusableKeyError as error:
        held, fix = f"{error} under {_KEY}", _make_anew(namespace, name)
    yield Problem(
        place=("hostedClusters", index, "hostedCluster", "serviceAccountSigningKey"),
        rule="signing-key-secret-unusable",
        found=f'"{name}", which holds {held}',
        accepted=f"a Secret in {namespace} with an RSA private key in PEM under {_KEY}, in PKCS#1 (`BEGIN RSA PRIVATE "
        "KEY`): HyperShift reads no other form",
        fix=fix,
    )


def _make_anew(namespace: str, name: str) -> str:
    return f"put the key there whose public half the issuer publishes: `{_write(namespace, name, '<file>')}`"


def _write(namespace: str, name: str, file: str) -> str:
    """The command that replaces the key and keeps whatever else the Secret has."""
    return (
        f"kubectl --namespace {namespace} create secret generic {name} --from-file={_KEY}={file} --dry-run=client "
        "--output yaml | kubectl apply --server-side --force-conflicts --filename -"
    )
