"""HyperShift's token-minter at a hosted cluster's kube-apiserver, and azidentity signs in with what it minted."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from identity.aks.probe_pod import proof_argument
from identity.catalogue import CONTROL_PLANE, DATA_PLANE, FEDERATED_AUDIENCE, MANAGEMENT_AUDIENCE
from identity.catalogue_rows import ProofCall, ProofTarget
from identity.clouds import CLOUDS, DEFAULT_CLOUD
from identity.naming import parse_arm_id
from localcloud.testing.running import StateDirectory
from tests.consumers.clients import ImageRegistry, Ingress, Network
from tests.consumers.consumer import NONE, Client, missing, needs, program
from tests.consumers.drivers import make_machine
from tests.consumers.guest import guest
from tests.consumers.programs import CloudControllerManager
from tests.engine.key_material import vault_keys
from tests.engine.service_accounts import proof_of
from tests.engine.small_stack import small_stack
from tests.engine.test_workload_identities import self_managed
from tests.harness import LocalStack
from tools import golang
from tools.steps import ROOT

# The operator's program, of which token-minter is a command.
_OPERATOR: Final = "control-plane-operator"
pytestmark = needs(_OPERATOR)
# Of each service account, its cluster, where its client's id is in the cluster's outputs, and the first read.
_ACCOUNTS: Final = [
    ("hc2", ("hostedClusterSpec", *row.workload_path, "clientID"), row.proof, subject.subject)
    for row in CONTROL_PLANE
    if row.workload
    for subject in row.workload.subjects
] + [
    ("hc1", ("dataPlane", identity.field), proof_of(identity), subject.subject)
    for identity in DATA_PLANE
    for subject in identity.subjects
]

# Of HyperShift's operator, on the management cluster. It has Velero's identity.
_JOB: Final = "system:serviceaccount:hypershift:etcd-backup-job"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """With `hc1`, which has identities of the data plane, and the self-managed `hc2`, each with an issuer."""
    with small_stack(tmp_path_factory.mktemp("stack"), "hypershift") as stack:
        [managed] = stack.configuration("hostedClusters")
        issued = {name: value for name, value in managed.items() if name != "issuerURL"}
        issued |= {"issuer": "create", "issuerName": "hc1created"}
        group = f"/subscriptions/{stack.environment.subscription_id}/resourceGroups/identity-local"
        account = f"{group}/providers/Microsoft.Storage/storageAccounts/backuplocal"
        # The second cluster stands in for the management cluster, whose issuer is AKS's.
        issuer = "https://hc2created.blob.core.windows.net/hc2created"
        issued |= {"managedIdentities": ["velero"], "managementIssuerURL": issuer, "backupStorageAccountID": account}
        stack.configure(hostedClusters=[issued, self_managed(managed, dns=managed["dns"])])
        stack.up()
        make_machine(stack)
        yield stack


@pytest.fixture(scope="module")
def kubeconfigs(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Path]]:
    """Of the administrator of each cluster's kube-apiserver, which signs with the key of the cluster's issuer."""
    with ExitStack() as running:
        found = {}
        for cluster in ("hc1", "hc2"):
            folder = tmp_path_factory.mktemp(cluster)
            [key] = [key for name, key in vault_keys(stack).items() if f"{cluster}-sa-signing-key" in name]
            assert isinstance(key, RSAPrivateKey)
            pem = folder / "service-account.pem"
            pem.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
            keys = {"service_account_signing_key_file": str(pem), "service_account_key_file": str(pem)}
            issuer = f"https://{cluster}created.blob.core.windows.net/{cluster}created"
            http = running.enter_context(guest(stack, folder, service_account_issuer=issuer, **keys))
            found[cluster] = folder / "kubeconfig"
            kubeconfig = yaml.safe_load(StateDirectory(stack.state).administrator_kubeconfig.read_text())
            kubeconfig["clusters"][0]["cluster"]["server"] = str(http.base_url)
            found[cluster].write_text(yaml.safe_dump(kubeconfig))
        _make_namespaces(http)
        yield found


def _make_namespaces(http: httpx.Client) -> None:
    """Those that OpenShift makes, for all guests: they share their part of etcd."""
    accounts = (*(account for *_, account in _ACCOUNTS), _JOB)
    for namespace in {account.split(":")[2] for account in accounts} - {"kube-system"}:
        http.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()


def _minted(kubeconfig: Path, subject: str, audience: str = FEDERATED_AUDIENCE) -> str:
    """The file with a token of the service account, as the sidecar of its pod writes it."""
    *_, namespace, name = subject.split(":")
    file = str(kubeconfig.with_name(name))
    account = (f"--service-account-namespace={namespace}", f"--service-account-name={name}")
    written = (f"--token-audience={audience}", f"--token-file={file}", "--oneshot")
    subprocess.run([program(_OPERATOR), "token-minter", *account, *written, f"--kubeconfig={kubeconfig}"], check=True)
    return file


def _request(stack: LocalStack, call: ProofCall) -> list[str]:
    """Scope, method, URL and body of a call, at Azure's own addresses."""
    [managed, _] = stack.configuration("hostedClusters")
    vault, _, name, version = managed["kms"]["activeKey"].removeprefix("https://").split("/")
    target = ProofTarget(
        subscription=stack.environment.subscription_id,
        managed=managed["resourceGroup"],
        vnet_group="hc1-network",
        vnet="hc1-vnet",
        subnet="default",
        key_vault=vault.partition(".")[0],
        key=name,
        key_version=version,
    )
    asked: dict[str, Any] = json.loads(proof_argument(call, CLOUDS[DEFAULT_CLOUD], target))
    body = [json.dumps(asked["body"])] if "body" in asked else []
    return [asked["scope"], asked["method"], asked["url"], *body]


@pytest.mark.parametrize(
    ("cluster", "path", "call", "subject"),
    _ACCOUNTS,
    ids=[f"{cluster}-{account}" for cluster, *_, account in _ACCOUNTS],
)
def test_a_minted_token_signs_in_and_reads(
    stack: LocalStack,
    kubeconfigs: Mapping[str, Path],
    cluster: str,
    path: tuple[str, ...],
    call: ProofCall,
    subject: str,
) -> None:
    signing_in = _variables(stack, cluster, path, _minted(kubeconfigs[cluster], subject))
    client = golang.build(Path(ROOT, "tests/e2e/azidentity"))
    done = subprocess.run([client, *_request(stack, call)], env=signing_in, capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "200", done.stderr


@pytest.mark.parametrize(
    ("field", "kind"), [("cloudProvider", "loadBalancers"), ("disk", "disks"), ("file", "storageAccounts")]
)
def test_the_library_of_controllers_works_by_a_minted_token(
    stack: LocalStack, kubeconfigs: Mapping[str, Path], tmp_path: Path, field: str, kind: str
) -> None:
    client = golang.build(Path(__file__).with_name("azclient"))
    config = _cloud_config(stack, kubeconfigs["hc2"], field, tmp_path)
    lines = "".join(f"{verb} tokenhc2\n" for verb in ("list", "create", "delete"))

    done = subprocess.run(
        [client, config, kind], input=lines, env=_network(stack), capture_output=True, text=True, check=False
    )

    assert done.stdout.splitlines() == [f'"{NONE}"'] * 3, done.stdout + done.stderr


@needs(CloudControllerManager.program)
def test_the_cloud_controller_manager_works_by_a_minted_token(
    stack: LocalStack, kubeconfigs: Mapping[str, Path], tmp_path: Path
) -> None:
    config = _cloud_config(stack, kubeconfigs["hc2"], CloudControllerManager.field, tmp_path)
    manager = CloudControllerManager(stack, program(CloudControllerManager.program), tmp_path / "manager")
    options = manager.options(config, manager.folder / "kubeconfig")
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen([program(manager.program), *options], env=_network(stack), stdout=log, stderr=log) as process,
    ):
        refused = manager.work()
        process.kill()

    assert refused == ""


@pytest.mark.parametrize("client", [Ingress, ImageRegistry, Network])
def test_an_operators_client_works_by_a_minted_token(
    stack: LocalStack, kubeconfigs: Mapping[str, Path], tmp_path: Path, client: type[Client]
) -> None:
    if reason := missing(client.program, guest=False):
        pytest.skip(reason)
    made = client(stack, program(client.program), tmp_path / "client")
    path, token = _workload(kubeconfigs["hc2"], client.field)
    # As the cloud credential operator writes them.
    for name, value in (
        ("subscription_id", stack.environment.subscription_id),
        ("resourcegroup", made.cluster["resourceGroup"]),
    ):
        (made.folder / f"azure_{name}").write_text(value)
    [row] = [identity for identity in CONTROL_PLANE if identity.field == client.field]
    options = (str(made.folder),) if client is Network else made.arguments(row.mounts[0])
    done = subprocess.run(
        [program(client.program), *options],
        input="".join(f"{line}\n" for line in made.lines()),
        env=_variables(stack, "hc2", path, token),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines() == [f'"{NONE}"' for _ in made.lines()], done.stdout + done.stderr


def _workload(kubeconfig: Path, field: str) -> tuple[tuple[str, ...], str]:
    """Where the outputs have the client of an identity with workloads, and the file with a token of it."""
    [row] = [identity for identity in CONTROL_PLANE if identity.field == field]
    assert row.workload
    path = ("hostedClusterSpec", *row.workload_path, "clientID")
    return path, _minted(kubeconfig, row.workload.subjects[0].subject)


def _cloud_config(stack: LocalStack, kubeconfig: Path, field: str, folder: Path) -> Path:
    """The cloud config of a self-managed cluster, with a service account's token.

    Source: HyperShift's `azureConfig` (control-plane-operator `v2/cloud_controller_manager/azure/config.go`).
    """
    [_, cluster] = stack.configuration("hostedClusters")
    vnet, subnet, group = (parse_arm_id(cluster[key]) for key in ("vnetID", "subnetID", "securityGroupID"))
    path, token = _workload(kubeconfig, field)
    document = {
        "cloud": DEFAULT_CLOUD,
        "tenantId": stack.environment.tenant_id,
        "subscriptionId": stack.environment.subscription_id,
        "resourceGroup": cluster["resourceGroup"],
        "location": stack.configuration("location"),
        "vnetName": vnet.name,
        "vnetResourceGroup": vnet.resource_group,
        "subnetName": subnet.name,
        "securityGroupName": group.name,
        "securityGroupResourceGroup": group.resource_group,
        "loadBalancerName": cluster["infraID"],
        "loadBalancerSku": "standard",
        "useFederatedWorkloadIdentityExtension": True,
        "aadClientId": _client_id(stack, "hc2", path),
        "aadFederatedTokenFile": token,
    }
    (config := folder / "cloud.conf").write_text(json.dumps(document))
    return config


def test_a_backup_job_uploads_as_veleros_identity(
    stack: LocalStack, kubeconfigs: Mapping[str, Path], tmp_path: Path
) -> None:
    (snapshot := tmp_path / "snapshot.db").write_text("etcd")
    upload = (
        *("etcd-upload", f"--snapshot-path={snapshot}", "--key-prefix=job", "--storage-type=AzureBlob"),
        *("--azure-container=etcd", "--azure-storage-account=backuplocal"),
    )
    token = _minted(kubeconfigs["hc2"], _JOB, MANAGEMENT_AUDIENCE)
    signing_in = _variables(stack, "hc1", ("managedIdentities", "velero", "clientID"), token)

    subprocess.run([program(_OPERATOR), *upload], env=signing_in, check=True)

    Path("/dev/termination-log").unlink()  # the machine's: a pod's /dev would be its own
    assert [key for kind, key in stack.contents() if kind == "blob" and key.startswith("backuplocal/etcd/job/")]


def _variables(stack: LocalStack, cluster: str, path: tuple[str, ...], token: str) -> dict[str, str]:
    """Those of a pod that signs in by a token, as the client at `path` of the cluster's outputs."""
    return _network(stack) | {
        "AZURE_TENANT_ID": stack.environment.tenant_id,
        "AZURE_CLIENT_ID": _client_id(stack, cluster, path),
        "AZURE_FEDERATED_TOKEN_FILE": token,
    }


def _network(stack: LocalStack) -> dict[str, str]:
    return {"HTTPS_PROXY": stack.environment.proxy_endpoint, "SSL_CERT_FILE": stack.environment.ca_file}


def _client_id(stack: LocalStack, cluster: str, path: tuple[str, ...]) -> str:
    return str(reduce(lambda found, key: found[key], path, stack.outputs["hostedClusters"][cluster]))
