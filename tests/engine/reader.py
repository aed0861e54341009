"""The caller that previews a stack in a pull request: the preview identity of `docs/guides/pull-requests.md`.

It is an application of the stack's tenant with a certificate of its own, Reader on the resource groups that the
configuration names, and without any permission in Microsoft Graph. With `cluster_user` it has also the right to
the management cluster's address, which `clusterSide: stack` needs. The state it reads as a file.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import requests
import yaml
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CertificateCredential

from identity.aks.tokens import CACHE_VARIABLE
from identity.credentials.certificate import issue
from identity.naming import resource_group_id, resource_id
from localcloud.testing.faults import Faults
from localcloud.testing.running import write_private
from tests.engine.out_of_band import OutOfBand, credential_of
from tests.harness import LocalStack, steps_of

READER: Final = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
_CLUSTER_USER: Final = "4abbcc35-e782-43d8-92c5-2d3f1bd2253f"
_ASSIGNMENTS: Final = "2022-04-01"
_ARM: Final = "https://management.core.windows.net//.default"
_KNOWN_WITHIN: Final = timedelta(seconds=60)


@dataclass(frozen=True)
class Reader:
    """A preview identity of `stack`. `folder` is its own: its key and certificate, its cached tokens."""

    stack: LocalStack
    client_id: str
    object_id: str
    folder: Path

    @property
    def certificate(self) -> Path:
        """Key and certificate, PEM."""
        return self.folder / "reader.pem"

    @property
    def variables(self) -> dict[str, str]:
        """Environment in which a command of the stack runs as the reader."""
        return {
            **self.stack.variables,
            "PULUMI_STACK": self.stack.name,
            "ARM_CLIENT_ID": self.client_id,
            "ARM_CLIENT_CERTIFICATE_PATH": str(self.certificate),
            CACHE_VARIABLE: str(self.folder / "tokens"),
        }

    def pulumi(self, *arguments: str) -> str:
        """What the engine prints when the reader runs it; a failure is an AssertionError."""
        return self.stack.pulumi(*arguments, check=True, **self.variables).stdout

    def preview(self, *arguments: str) -> dict[str, str]:
        """What a preview shows: operation by resource name, without what stays the same."""
        return steps_of(self.pulumi("preview", "--json", *arguments))

    def request(self, method: str, url: str, scope: str, body: Any = None, **query: str) -> requests.Response:
        """One request with the reader's own token."""
        return requests.request(
            method,
            url,
            headers={"Authorization": f"Bearer {self.credential().get_token(scope).token}"},
            params=query,
            json=body,
            verify=self.stack.environment.ca_file,
            timeout=30,
        )

    def arm(self, method: str, path: str, body: Any = None, *, version: str = "2023-07-01") -> requests.Response:
        """One request to ARM."""
        url = f"{self.stack.environment.arm_endpoint}{path}"
        return self.request(method, url, _ARM, body, **{"api-version": version})

    def vault(self, method: str, path: str, body: Any = None) -> requests.Response:
        """One request to the data plane of the stack's vault."""
        url = f"{self.stack.environment.key_vault_endpoint}{path}"
        return self.request(method, url, "https://vault.azure.net/.default", body, **{"api-version": "7.4"})

    def graph(self, method: str, path: str, body: Any = None) -> requests.Response:
        """One request to Microsoft Graph."""
        url = f"{self.stack.environment.graph_endpoint}/v1.0{path}"
        return self.request(method, url, "https://graph.microsoft.com/.default", body)

    def credential(self) -> CertificateCredential:
        """The reader's sign-in, with nothing in its cache."""
        return credential_of(self.stack.environment, self.client_id, str(self.certificate))

    def await_rights(self, *scopes: str) -> None:
        """Return as soon as every replica of Entra ID knows the reader and its roles at `scopes` have taken effect."""
        deadline = datetime.now(UTC) + _KNOWN_WITHIN
        lag = max(self.stack.faults.get("replica_delays", Faults().replica_delays))
        # Whichever replicas answer: after this time the slowest knows what the first one knew.
        known_since = datetime.now(UTC)
        while datetime.now(UTC) - known_since < timedelta(seconds=lag + 0.5):
            if not self._is_known():
                known_since = datetime.now(UTC)
            assert datetime.now(UTC) < deadline, "Entra ID does not know the reader"
            threading.Event().wait(0.1)
        for scope in scopes:
            while (answer := self.arm("GET", scope, version="2021-04-01")).status_code == 403:
                assert datetime.now(UTC) < deadline, answer.text
                threading.Event().wait(0.1)

    def _is_known(self) -> bool:
        try:
            self.credential().get_token(_ARM)
        except ClientAuthenticationError:
            return False
        return True


@contextmanager
def reader_of(stack: LocalStack, folder: Path, *, cluster_user: bool = False) -> Iterator[Reader]:
    """A preview identity of the stack until the end of the block.

    The tenant's administrator makes it; here that is the deployer with the right to assign any role.
    """
    stack.administer()
    administrator = OutOfBand(stack)
    reader = signed_up(administrator, stack, f"reader-{uuid.uuid4()}", folder)
    groups = dict.fromkeys(resource_groups(stack), READER)
    cluster = stack.configuration("managementCluster")
    aks = "Microsoft.ContainerService/managedClusters"
    cluster_id = resource_id(stack.environment.subscription_id, cluster["resourceGroup"], aks, cluster["name"])
    clusters = {cluster_id: _CLUSTER_USER} if cluster_user else {}
    made = [administrator.assign(scope, role, reader.object_id) for scope, role in {**groups, **clusters}.items()]
    reader.await_rights(*groups)
    try:
        yield reader
    finally:
        for assignment in made:
            administrator.arm("DELETE", assignment, _ASSIGNMENTS)
        administrator.graph("DELETE", f"/applications(appId='{reader.client_id}')")


def signed_up(administrator: OutOfBand, stack: LocalStack, name: str, folder: Path) -> Reader:
    """A new application, whose key and certificate are in `folder`, without any right."""
    now = datetime.now(UTC)
    issued = issue("reader", not_before=now - timedelta(minutes=5), lifetime=timedelta(days=1))
    application, principal = administrator.application(name, issued.certificate_pem)
    made = Reader(stack, application["appId"], principal["id"], folder)
    write_private(made.certificate, (issued.private_key_pem + issued.certificate_pem).encode())
    return made


def resource_groups(stack: LocalStack) -> list[str]:
    """ARM ids of the resource groups that the stack's configuration names, by name or in an id."""
    document = yaml.safe_load((stack.root / f"Pulumi.{stack.name}.yaml").read_text(encoding="utf-8"))
    names = sorted(set(_names(document["config"])))
    return [resource_group_id(stack.environment.subscription_id, name) for name in names]


def _names(value: object, key: str = "") -> Iterator[str]:
    match value:
        case Mapping():
            for name, part in value.items():
                yield from _names(part, str(name))
        case list():
            for part in value:
                yield from _names(part)
        case str() if key.lower().endswith("resourcegroup"):
            yield value
        case str():
            yield from re.findall(r"/resourceGroups/([^/]+)/", value)
