"""Where a stack on Azure keeps its state: a storage account and a vault's key, and who may use them.

As `docs/guides/pull-requests.md` and `docs/guides/fleet.md` have it: a container, a key, and identities that trust the
tokens of an issuer. The issuer's documents lie in a public container.
"""

from __future__ import annotations

import base64
import copy
import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import requests

from identity.azure.client import AzureClient
from identity.catalogue import FEDERATED_AUDIENCE, MANAGEMENT_AUDIENCE
from identity.clouds import local_cloud
from identity.credentials.openid_documents import DISCOVERY_PATH, discovery_document, jwks_document
from identity.credentials.service_account_key import make, public_half
from localcloud.testing.running import LocalEnvironment, network
from ops.stack.environment import variables
from tests.engine.out_of_band import OutOfBand
from tests.engine.service_accounts import GuestCluster
from tests.harness import LocalStack

BACKEND: Final = "azblob://pulumi-state?storage_account=stidstackstate"
KEY: Final = "azurekeyvault://kv-etcd-local.vault.azure.net/keys/hc1-etcd"
ISSUER: Final = "https://stidstackissuer.blob.core.windows.net/oidc"
_SUBJECT: Final = "system:serviceaccount:idstack-fleet:{name}"
_BLOB_CONTRIBUTOR: Final = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
_BLOB_READER: Final = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"
_CRYPTO_USER: Final = "12338af0-0e69-4776-bea7-57ae8d297424"
_STORAGE: Final = "2023-05-01"
_IDENTITIES: Final = "2023-01-31"
# What is new takes effect at once: how long it takes in Azure is not what is asked here.
FAULTS: Final[Mapping[str, Any]] = {
    "replica_delays": [0.0],
    "principal_delay": 0,
    "role_delay": 0,
    "federated_credential_write": 0,
}
# With BEGUN, a pipe, it says that it runs, and goes on until it is killed.
_PROGRAM: Final = """\
import os, signal
import pulumi
pulumi.export("word", pulumi.Config().require_secret("word"))
if "BEGUN" in os.environ:
    open(os.environ["BEGUN"], "w").close()
    signal.pause()
"""


class StateInAzure(OutOfBand):
    """The account, the key and the issuer, made as the local cloud's deployer, who assigns every role."""

    def __init__(self, stack: LocalStack, signing_key: str | None = None) -> None:
        super().__init__(stack)
        self._signing_key = signing_key or make()
        self._group = f"/subscriptions/{stack.environment.subscription_id}/resourceGroups/identity-local"
        self.container = self._account("stidstackstate", "pulumi-state", "None")
        self.assign(self.container, _BLOB_READER, self._deployer)
        self._publish()
        reads = [f"Microsoft.KeyVault/vaults/keys/{action}" for action in ("read", "decrypt/action")]
        self._reader_of_the_key = self.custom_role("State reader", {"actions": [], "dataActions": reads}, [self._group])

    @property
    def _vault_key(self) -> str:
        return f"{self._group}/providers/Microsoft.KeyVault/vaults/kv-etcd-local/keys/hc1-etcd"

    def writer(self, folder: Path) -> EngineOnAzure:
        """The engine as the deployer of an environment."""
        return self._engine(folder, "writer", _BLOB_CONTRIBUTOR, _CRYPTO_USER)

    def reader(self, folder: Path) -> EngineOnAzure:
        """The engine as the preview identity."""
        return self._engine(folder, "reader", _BLOB_READER, self._reader_of_the_key)

    def nobody(self, folder: Path) -> EngineOnAzure:
        """The engine as an identity without a role."""
        return self._engine(folder, "nobody")

    def trust(self, name: str) -> None:
        """Let the deployer itself in, with the tokens of a ServiceAccount of the fleet; its owner does so."""
        owner, application = OutOfBand(self._stack, is_owner=True), self._stack.environment.deployer_client_id
        trust = {
            "name": "pod",
            "issuer": ISSUER,
            "subject": _SUBJECT.format(name=name),
            "audiences": [MANAGEMENT_AUDIENCE],
        }
        owner.graph("POST", f"/applications(appId='{application}')/federatedIdentityCredentials", trust)
        for role, scope in ((_BLOB_CONTRIBUTOR, self.container), (_CRYPTO_USER, self._vault_key)):
            self.assign(scope, role, self._deployer)

    def client(self) -> AzureClient:
        """A client that reads the container, with the rights of a person who looks for faults."""
        local = self._stack.environment
        return AzureClient(local_cloud(local), self._credential, local.ca_file)

    def blobs(self) -> dict[str, bytes]:
        """The content of what lies in the container, by name."""
        prefix = "stidstackstate/pulumi-state/"
        return {
            key.removeprefix(prefix): base64.b64decode(json.loads(document)["content"])
            for (kind, key), document in self._stack.contents().items()
            if kind == "blob" and key.startswith(prefix)
        }

    def _engine(self, folder: Path, name: str, *roles: str) -> EngineOnAzure:
        identity = f"{self._group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
        made = self.arm("PUT", identity, _IDENTITIES, {"location": "eastus"})["properties"]
        subject = _SUBJECT.format(name=name)
        trust = {"issuer": ISSUER, "subject": subject, "audiences": [FEDERATED_AUDIENCE]}
        self.arm("PUT", f"{identity}/federatedIdentityCredentials/pod", _IDENTITIES, {"properties": trust})
        for role, scope in zip(roles, (self.container, self._vault_key), strict=False):
            self.assign(scope, role, made["principalId"])
        folder.mkdir()
        token = folder / "token"
        token.write_text(GuestCluster(self._stack, ISSUER, self._signing_key).token(subject))
        return EngineOnAzure(folder, self._stack, made["clientId"], token)

    @property
    def _deployer(self) -> str:
        """Object id of the deployer."""
        client_id = self._stack.environment.deployer_client_id
        found: str = self.graph("GET", f"/servicePrincipals(appId='{client_id}')")["id"]
        return found

    def _account(self, name: str, container: str, access: str) -> str:
        account = f"{self._group}/providers/Microsoft.Storage/storageAccounts/{name}"
        properties = {"allowBlobPublicAccess": access != "None", "allowSharedKeyAccess": access != "None"}
        body = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": properties}
        self.arm("PUT", account, _STORAGE, body)
        made = f"{account}/blobServices/default/containers/{container}"
        self.arm("PUT", made, _STORAGE, {"properties": {"publicAccess": access}})
        return made

    def _publish(self) -> None:
        """The issuer's documents, written by the deployer."""
        container = self._account("stidstackissuer", "oidc", "Blob")
        local = self._stack.environment
        self.assign(container, _BLOB_CONTRIBUTOR, self._deployer)
        discovery = discovery_document(ISSUER)
        documents = {DISCOVERY_PATH: discovery, "/openid/v1/jwks": jwks_document([public_half(self._signing_key).jwk])}
        token = self._credential.get_token("https://storage.azure.com/.default").token
        for path, content in documents.items():
            headers = {
                "Authorization": f"Bearer {token}",
                "Host": "stidstackissuer.blob.core.windows.net",
                "x-ms-version": "2024-11-04",
                "x-ms-blob-type": "BlockBlob",
            }
            answer = requests.put(
                f"{local.blob_endpoint}/oidc{path}", content, headers=headers, verify=local.ca_file, timeout=30
            )
            assert answer.ok, answer.text


class EngineOnAzure:
    """The engine with the variables of a stack on Azure, signed in with a pod's token as Azure's webhook sets it up."""

    def __init__(self, folder: Path, stack: LocalStack, client_id: str, token: Path) -> None:
        self.folder = folder
        local = stack.environment
        (folder / "Pulumi.yaml").write_text(
            f"name: state\nruntime: {{name: python, options: {{virtualenv: {stack.root / '.venv'}}}}}\n"
        )
        (folder / "__main__.py").write_text(_PROGRAM)
        self.environment = variables(
            "dev",
            {
                "HOME": str(folder),
                "PATH": os.environ["PATH"],
                "PULUMI_HOME": str(folder / "home"),
                "PULUMI_BACKEND_URL": BACKEND,
                "AZURE_TOKEN_CREDENTIALS": "WorkloadIdentityCredential",
                "AZURE_FEDERATED_TOKEN_FILE": str(token),
                "AZURE_CLIENT_ID": client_id,
                "AZURE_TENANT_ID": local.tenant_id,
                "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.com/",
                **network(LocalEnvironment.from_file(stack.state / "environment.json")),
            },
        )

    def elsewhere(self, folder: Path) -> EngineOnAzure:
        """The same identity and program in a folder of its own, which has no stack's file."""
        folder.mkdir()
        for name in ("Pulumi.yaml", "__main__.py"):
            (folder / name).write_bytes((self.folder / name).read_bytes())
        other = copy.copy(self)
        other.folder = folder
        return other

    def with_configuration_of(self, other: EngineOnAzure) -> None:
        """Take another one's file of the stack, as a checkout of the repository has it."""
        name = "Pulumi.dev.yaml"
        (self.folder / name).write_bytes((other.folder / name).read_bytes())

    def killed(self, *arguments: str) -> None:
        """Start a command, and kill it with all that it has started once the program runs."""
        begun = self.folder / "begun"
        os.mkfifo(begun)
        process = subprocess.Popen(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.folder,
            env={**self.environment, "BEGUN": str(begun)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        pipe, ended = os.open(begun, os.O_RDONLY | os.O_NONBLOCK), os.pidfd_open(process.pid)
        ready, _, _ = select.select([pipe, ended], [], [])
        os.close(pipe)
        os.close(ended)
        assert pipe in ready, "the engine ended before the program began"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """One command of the engine; a failure shows what it printed."""
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done
