"""HyperShift's token-minter at a hosted cluster's kube-apiserver, and azidentity signs in with what it minted."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
from identity.catalogue_rows import CloudConfigKind, ControlPlaneIdentity, ProofCall, ProofTarget, WorkloadColumns
from identity.clouds import CLOUDS, DEFAULT_CLOUD
from identity.naming import parse_arm_id
from localcloud.testing.kubernetes import client_of
from localcloud.testing.running import StateDirectory
from tests.consumers.consumer import Consumer, Pod, free_port, needs, program, row_of
from tests.consumers.drivers import make_machine
from tests.consumers.guest import guest
from tests.consumers.programs import EtcdUpload
from tests.consumers.test_consumers import CONSUMERS
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
_CAPZ: Final = "infrastructure.cluster.x-k8s.io/v1beta1"


def mint(kubeconfig: Path, subject: str, file: Path, audience: str = FEDERATED_AUDIENCE) -> None:
    """Write a token of the service account, as the sidecar of its pod does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    *_, namespace, name = subject.split(":")
    account = (f"--service-account-namespace={namespace}", f"--service-account-name={name}")
    written = (f"--token-audience={audience}", f"--token-file={file}", "--oneshot", f"--kubeconfig={kubeconfig}")
    subprocess.run([program(EtcdUpload.program), "token-minter", *account, *written], check=True)


def client_id(stack: LocalStack, cluster: str, path: Sequence[str]) -> str:
    """The client at `path` of the cluster's outputs."""
    return str(reduce(lambda found, key: found[key], path, stack.outputs["hostedClusters"][cluster]))


def signing_in(stack: LocalStack, client: str, token: str) -> dict[str, str]:
    """The variables of a pod that signs in by the token in this file."""
    tenant = stack.environment.tenant_id
    return {"AZURE_TENANT_ID": tenant, "AZURE_CLIENT_ID": client, "AZURE_FEDERATED_TOKEN_FILE": token}


def pod_of(stack: LocalStack, row: ControlPlaneIdentity, kubeconfig: Path, tree: Path) -> Pod:
    """The pod of an identity of `hc2`; its mounts are put into `tree`: a minted token, and what HyperShift writes.

    Sources in openshift/hypershift at 3ee9615: hypershift-operator/controllers/hostedcluster/internal/platform/azure/
    azure.go and, of cloud configs, control-plane-operator/controllers/hostedcontrolplane/v2.
    """
    assert row.workload
    config, client, token = row.mounts[0].config, _client_of(stack, row), row.workload.token
    mint(kubeconfig, row.workload.subjects[0].subject, tree / token.lstrip("/"))
    variables = signing_in(stack, client, token)
    if config is None:
        return Pod(tree, variables)
    document = _cloud_config(stack)
    if config.kind is CloudConfigKind.KMS_PLUGIN:
        document |= {"useWorkloadIdentityExtension": True}
    else:
        variables = {config.env: config.path} if config.env else {}
        of_token = {"aadClientId": client, "aadFederatedTokenFile": token}
        document |= {"useFederatedWorkloadIdentityExtension": True, **of_token}
    (tree / config.directory.lstrip("/")).mkdir(parents=True)
    (tree / config.path.lstrip("/")).write_text(json.dumps(document))
    return Pod(tree, variables)


def _client_of(stack: LocalStack, row: ControlPlaneIdentity) -> str:
    return client_id(stack, "hc2", ("hostedClusterSpec", *row.workload_path, "clientID"))


def _cloud_config(stack: LocalStack) -> dict[str, Any]:
    *_, cluster = stack.configuration("hostedClusters")
    vnet, subnet, group = (parse_arm_id(cluster[key]) for key in ("vnetID", "subnetID", "securityGroupID"))
    return {
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
    }


def write_objects(stack: LocalStack) -> None:
    """Write the objects of `hc2` that programs read by themselves."""
    *_, cluster = stack.configuration("hostedClusters")
    [mount], tenant = row_of("network").mounts, stack.environment.tenant_id
    assert mount.platform
    platform = {
        "azure_resourcegroup": cluster["resourceGroup"],
        "azure_subscription_id": stack.environment.subscription_id,
        "azure_tenant_id": tenant,
        "azure_client_id": _client_of(stack, row_of("network")),
        "azure_federated_token_file": WorkloadColumns.token,
    }
    machines = {
        "clientID": _client_of(stack, row_of("nodePoolManagement")),
        "tenantID": tenant,
        "type": "WorkloadIdentity",
        "allowedNamespaces": {"list": ["clusters-hc2"]},
    }
    with stack.kubernetes("administrator") as http:
        for path, name, own in (
            ("api/v1/namespaces", "clusters-hc2", {}),
            ("api/v1/namespaces/clusters-hc2/secrets", mount.platform.secret, {"stringData": platform}),
            (
                f"apis/{_CAPZ}/namespaces/clusters-hc2/azureclusteridentities",
                "hc2",
                {"apiVersion": _CAPZ, "kind": "AzureClusterIdentity", "spec": machines},
            ),
        ):
            http.post(f"/{path}", json={"metadata": {"name": name}, **own}).raise_for_status()


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

VELERO: Final = "velero"
PLUGIN: Final = "velero-plugin-for-microsoft-azure"
_OADP: Final = "openshift-adp"
_VELERO_SECONDS: Final = 600


@dataclass(frozen=True)
class Velero:
    """Velero's command beside its server."""

    kubeconfig: Path
    log: Path

    def __call__(self, *arguments: str) -> str:
        """What the command prints; it fails with the server's log."""
        command = (str(program(VELERO)), *arguments, f"--namespace={_OADP}", f"--kubeconfig={self.kubeconfig}")
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_VELERO_SECONDS)
        assert done.returncode == 0, done.stderr + self.log.read_text()
        return done.stdout


@contextmanager
def running_velero(kubeconfig: Path, folder: Path, variables: Mapping[str, str]) -> Iterator[Velero]:
    """Velero with the local cloud's container of backups as its location."""
    (plugins := folder / "plugins").mkdir(parents=True)
    (plugins / PLUGIN).symlink_to(program(PLUGIN))
    velero = Velero(kubeconfig, folder / "log")
    # Beside its own in the container are other backups, which it refuses without a prefix.
    location = ("--bucket=etcd", "--prefix=velero", "--backup-location-config=storageAccount=backuplocal,useAAD=true")
    velero("install", "--provider=azure", f"--plugins={PLUGIN}", "--no-secret", *location)
    ports = (f"--metrics-address=127.0.0.1:{free_port()}", f"--profiler-address=127.0.0.1:{free_port()}")
    options = (f"--namespace={_OADP}", f"--kubeconfig={kubeconfig}", f"--plugin-dir={plugins}", *ports)
    with (
        velero.log.open("w") as log,
        subprocess.Popen([program(VELERO), "server", *options], env=variables, stdout=log, stderr=log) as server,
    ):
        try:
            assert _location_phase(kubeconfig) == "Available", velero.log.read_text()
            yield velero
        finally:
            server.kill()


def _location_phase(kubeconfig: Path) -> str:
    """What Velero finds of its backup location, once it has looked."""
    path = f"/apis/velero.io/v1/namespaces/{_OADP}/backupstoragelocations"
    watched = {"watch": "1", "timeoutSeconds": str(_VELERO_SECONDS)}
    with client_of(kubeconfig) as http, http.stream("GET", path, params=watched, timeout=_VELERO_SECONDS) as changes:
        found = (json.loads(line)["object"].get("status", {}).get("phase", "") for line in changes.iter_lines())
        return next(filter(None, found), "")


# On the management cluster, of HyperShift's operator and of OADP. They share Velero's identity.
_JOB: Final = "system:serviceaccount:hypershift:etcd-backup-job"
_VELERO: Final = f"system:serviceaccount:{_OADP}:velero"


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
        write_objects(stack)
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
    accounts = (*(account for *_, account in _ACCOUNTS), _JOB, _VELERO)
    for namespace in {account.split(":")[2] for account in accounts} - {"kube-system"}:
        http.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()


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
    tmp_path: Path,
    cluster: str,
    path: tuple[str, ...],
    call: ProofCall,
    subject: str,
) -> None:
    mint(kubeconfigs[cluster], subject, token := tmp_path / "token")
    client = golang.build(Path(ROOT, "tests/e2e/azidentity"))
    variables = _network(stack) | signing_in(stack, client_id(stack, cluster, path), str(token))
    done = subprocess.run([client, *_request(stack, call)], env=variables, capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "200", done.stderr


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_consumer_works_by_a_minted_token(
    stack: LocalStack, kubeconfigs: Mapping[str, Path], tmp_path: Path, consumer: type[Consumer]
) -> None:
    if reason := consumer.missing():
        pytest.skip(reason)
    pod = pod_of(stack, row_of(consumer.field), kubeconfigs["hc2"], tmp_path / "tree")
    with consumer(stack, tmp_path / "consumer", pod) as started:
        refused = started.work()

    assert refused == ""


def test_a_backup_job_uploads_as_veleros_identity(
    stack: LocalStack, kubeconfigs: Mapping[str, Path], tmp_path: Path
) -> None:
    (snapshot := tmp_path / "snapshot.db").write_text("etcd")
    upload = (
        *("etcd-upload", f"--snapshot-path={snapshot}", "--key-prefix=job", "--storage-type=AzureBlob"),
        *("--azure-container=etcd", "--azure-storage-account=backuplocal"),
    )
    mint(kubeconfigs["hc2"], _JOB, token := tmp_path / "token", MANAGEMENT_AUDIENCE)
    client = client_id(stack, "hc1", ("managedIdentities", "velero", "clientID"))

    subprocess.run(
        [program(_OPERATOR), *upload], env=_network(stack) | signing_in(stack, client, str(token)), check=True
    )

    Path("/dev/termination-log").unlink()  # the machine's: a pod's /dev would be its own
    assert [key for kind, key in stack.contents() if kind == "blob" and key.startswith("backuplocal/etcd/job/")]


@needs(VELERO)
@needs(PLUGIN)
def test_velero_backs_up_and_restores(stack: LocalStack, kubeconfigs: Mapping[str, Path], tmp_path: Path) -> None:
    environment, client = stack.environment, client_id(stack, "hc1", ("managedIdentities", "velero", "clientID"))
    mint(kubeconfigs["hc2"], _VELERO, token := tmp_path / "token", MANAGEMENT_AUDIENCE)
    # As in the Secret `cloud-credentials` of optional-identities.md.
    (cloud := tmp_path / "cloud").write_text(
        f"AZURE_SUBSCRIPTION_ID={environment.subscription_id}\nAZURE_TENANT_ID={environment.tenant_id}\n"
        f"AZURE_CLIENT_ID={client}\nAZURE_RESOURCE_GROUP=identity-local\n"
    )
    own = {"AZURE_CREDENTIALS_FILE": str(cloud), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    variables = _network(stack) | signing_in(stack, client, str(token)) | own
    made = "/api/v1/namespaces/velero-proof/configmaps"
    with (
        client_of(kubeconfigs["hc2"]) as http,
        running_velero(kubeconfigs["hc2"], tmp_path / "velero", variables) as command,
    ):
        http.post("/api/v1/namespaces", json={"metadata": {"name": "velero-proof"}}).raise_for_status()
        http.post(made, json={"metadata": {"name": "kept"}, "data": {"a": "b"}}).raise_for_status()
        backed_up = command("backup", "create", "one", "--include-namespaces=velero-proof", "--wait")
        http.delete(f"{made}/kept").raise_for_status()
        restored = command("restore", "create", "one", "--from-backup=one", "--wait")
        kept = http.get(f"{made}/kept").json()

    assert "status: Completed" in backed_up, command.log.read_text()
    assert "status: Completed" in restored, command.log.read_text()
    assert kept["data"] == {"a": "b"}
    assert ("blob", "backuplocal/etcd/velero/backups/one/one.tar.gz") in stack.contents()


def _network(stack: LocalStack) -> dict[str, str]:
    return {"HTTPS_PROXY": stack.environment.proxy_endpoint, "SSL_CERT_FILE": stack.environment.ca_file}
