"""Refuses a Secret with a signing key that HyperShift cannot read, before a HostedCluster names it.

HyperShift reads PKCS#1 alone (openshift/hypershift support/certs/tls.go:250-256) and says `ValidConfiguration` False of
everything else, once the cluster exists. Keys that the stack itself writes are in PKCS#1.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final

from components.preflight.cluster_reader import ClusterReader
from identity.aks.api_server import ApiServer
from identity.azure.errors import AccessError
from identity.credentials.service_account_key import UnusableKeyError, is_read_by_hypershift
from identity.settings import ConfigurationError, Problem, Settings

_KEY: Final = "key"
_PATH: Final = "/api/v1/namespaces/{}/secrets/{}"


async def check_signing_key_secrets(settings: Settings, reader: ClusterReader | None) -> None:
    """Check the Secrets that somebody else made, if they exist and the deployer may read them.

    Raises ConfigurationError.
    """
    named = _named(settings)
    if not named or reader is None:
        return

    def read(server: ApiServer) -> dict[int, dict[str, Any] | None]:
        return {index: server.read(_PATH.format(*secret)) for index, secret in named.items()}

    try:
        secrets = await reader.ask(read)
    except AccessError:
        return  # most deployers may read no Secret, and HyperShift says the same later
    problems: list[Problem] = []
    for index, secret in secrets.items():
        problems += _problems(index, *named[index], secret) if secret else ()
    if problems:
        raise ConfigurationError(problems)


def _named(settings: Settings) -> dict[int, tuple[str, str]]:
    """Namespace and name of the Secret of each HostedCluster that the stack applies, by the cluster's index."""
    return {
        index: (cluster.namespace, cluster.hosted_cluster.service_account_signing_key)
        for index, cluster in enumerate(settings.hosted_clusters)
        if cluster.hosted_cluster is not None and cluster.hosted_cluster.service_account_signing_key is not None
    }


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
        held, fix = f"no text under {_KEY}", _put_key(namespace, name)
    except UnusableKeyError as error:
        held, fix = f"{error} under {_KEY}", _put_key(namespace, name)
    yield Problem(
        place=("hostedClusters", index, "hostedCluster", "serviceAccountSigningKey"),
        rule="signing-key-secret-unusable",
        found=f'"{name}", which holds {held}',
        accepted=f"a Secret in {namespace} with an RSA private key in PEM under {_KEY}, in PKCS#1 (`BEGIN RSA PRIVATE "
        "KEY`): HyperShift reads no other form",
        fix=fix,
    )


def _put_key(namespace: str, name: str) -> str:
    return f"put the key there whose public half the issuer publishes: `{_write(namespace, name, '<file>')}`"


def _write(namespace: str, name: str, file: str) -> str:
    """The command that replaces the key and keeps whatever else the Secret has."""
    return (
        f"kubectl --namespace {namespace} create secret generic {name} --from-file={_KEY}={file} --dry-run=client "
        "--output yaml | kubectl apply --server-side --force-conflicts --filename -"
    )
