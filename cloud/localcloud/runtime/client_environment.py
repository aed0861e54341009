"""The environment in which unmodified clients of Azure reach the local cloud by Azure's public names, signed in."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from localcloud.azure.keyvault.secrets import Secrets, Vaults
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.msi.issuer import CredentialDocument, NoCredentialDocumentError, read_document
from localcloud.azure.resource_store import Resources
from localcloud.core.certificates import as_pkcs12, parse
from localcloud.core.clouds import LocalEnvironment, network
from localcloud.core.files import write_private
from localcloud.runtime.environment import Prepared, ensure_owner

# Java's default password of the trust store, which has nothing secret.
_TRUST_PASSWORD: Final = "changeit"
NOT_FOUND: Final = 127
# The folder of this package, and the checkout around it.
_CHECKOUT: Final = Path(__file__).resolve().parents[2:4]


class UnknownClientError(LookupError):
    """No credential document has this name."""


def deployer(environment: LocalEnvironment) -> CredentialDocument:
    """The application that deploys stacks."""
    return CredentialDocument(
        client_id=environment.deployer_client_id,
        tenant_id=environment.tenant_id,
        key_material=parse(Path(environment.deployer_certificate).read_bytes()),
    )


def owner(prepared: Prepared) -> CredentialDocument:
    """The owner of the subscription, who may do in Azure and Entra ID what the deployer may not."""
    cloud, credential = prepared.cloud, prepared.state.owner_file
    principal = ensure_owner(prepared.store, cloud.directory, cloud.subscription_id, credential)
    return CredentialDocument(
        client_id=principal.app_id, tenant_id=cloud.tenant_id, key_material=parse(credential.read_bytes())
    )


def holder_of(cloud: LocalAzure, path: str) -> CredentialDocument:
    """The identity whose credential document is in a vault: `<secret>` of the stack's own, or `<vault>/<secret>`.

    Raises UnknownClientError.
    """
    vault_name, _, name = path.rpartition("/")
    vaults = Vaults(Resources(cloud.store))
    vault = vaults.named(vault_name) if vault_name else vaults.stacks_own()
    if vault is None:
        several = "there is no stack, or there are several: name the vault as well, <vault>/<secret>"
        missing = f"no vault {vault_name}; there {_listed(vault.name for vault in vaults.all())}"
        raise UnknownClientError(missing if vault_name else several)
    secret = Secrets(cloud.store).find(vault, name)
    if secret is None:
        names = _listed(secret.name for secret in Secrets(cloud.store).all(vault))
        raise UnknownClientError(f"no secret {name} in {vault.name}; there {names}")
    try:
        return read_document(Secrets(cloud.store).value(secret.current))
    except NoCredentialDocumentError:
        raise UnknownClientError(f"the secret {name} in {vault.name} is not a credential document") from None


def _listed(names: Iterable[str]) -> str:
    found = sorted(names)
    return f"{'is' if len(found) == 1 else 'are'} {', '.join(found)}" if found else "is none"


@contextmanager
def client_environment(environment: LocalEnvironment, client: CredentialDocument) -> Iterator[Mapping[str, str]]:
    """The variables for a child process; their files exist until the end of the block.

    They name the proxy, the certificate authority (in each form that clients read), the client's sign-in as Azure's
    SDKs and HashiCorp's providers take it, the Azure CLI's own directory, in which the client is signed in if there is
    an `az`, and the kubeconfig.
    """
    with tempfile.TemporaryDirectory(prefix="clients-", dir=Path(environment.state_dir, "run")) as folder:
        variables = {
            **_network(environment, Path(folder)),
            **_sign_in(environment, client, Path(folder)),
            "KUBECONFIG": environment.kubeconfig,
            "AZURE_CONFIG_DIR": str(Path(folder, "azure-cli")),
            "AZURE_CORE_COLLECT_TELEMETRY": "false",
        }
        _sign_in_to_cli(client, variables)
        yield variables


def _network(environment: LocalEnvironment, folder: Path) -> dict[str, str]:
    trust_store = folder / "trust.p12"
    authority = pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(Path(environment.ca_file).read_bytes()), b"ca")
    protection = BestAvailableEncryption(_TRUST_PASSWORD.encode())
    trust_store.write_bytes(pkcs12.serialize_java_truststore([authority], protection))
    proxy = urlsplit(environment.proxy_endpoint)
    java = {
        "javax.net.ssl.trustStore": trust_store,
        "javax.net.ssl.trustStoreType": "PKCS12",
        "javax.net.ssl.trustStorePassword": _TRUST_PASSWORD,
        "https.proxyHost": proxy.hostname,
        "https.proxyPort": proxy.port,
    }
    return {
        **network(environment),
        "NODE_EXTRA_CA_CERTS": environment.ca_file,
        "JAVA_TOOL_OPTIONS": " ".join(f"-D{name}={value}" for name, value in java.items()),
    }


def _sign_in(environment: LocalEnvironment, client: CredentialDocument, folder: Path) -> dict[str, str]:
    pem, pfx, material = folder / "client.pem", folder / "client.pfx", client.key_material
    write_private(pem, material.pem())
    write_private(pfx, as_pkcs12(material))
    return {
        "AZURE_TENANT_ID": client.tenant_id,
        "AZURE_CLIENT_ID": client.client_id,
        "AZURE_CLIENT_CERTIFICATE_PATH": str(pem),
        "AZURE_SUBSCRIPTION_ID": environment.subscription_id,
        "ARM_TENANT_ID": client.tenant_id,
        "ARM_CLIENT_ID": client.client_id,
        "ARM_CLIENT_CERTIFICATE_PATH": str(pfx),
        "ARM_CLIENT_CERTIFICATE_PASSWORD": "",
        "ARM_SUBSCRIPTION_ID": environment.subscription_id,
    }


def _sign_in_to_cli(client: CredentialDocument, variables: Mapping[str, str]) -> None:
    """Sign `az` in, if it is on PATH; its output is shown if it fails."""
    az = shutil.which("az")
    if az is None:
        return
    login = ["login", "--service-principal", "--username", client.client_id, "--tenant", client.tenant_id]
    certificate = ["--certificate", variables["AZURE_CLIENT_CERTIFICATE_PATH"]]
    options = ["--allow-no-subscriptions", "--output", "none", "--only-show-errors"]
    subprocess.run([az, *login, *certificate, *options], env=_child(variables), check=False)


def run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command in the environment; returns its exit code, 127 if there is no such command, as shells do."""
    try:
        return subprocess.run(command, env=_child(variables), check=False).returncode
    except FileNotFoundError:
        return NOT_FOUND


def _child(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: clients in Python must not import the modules of this checkout."""
    searched = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    own = os.pathsep.join(path for path in searched if path and Path(path) not in _CHECKOUT)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**inherited, **({"PYTHONPATH": own} if own else {}), **variables}
