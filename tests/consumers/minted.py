"""What a pod of a self-managed cluster has: a minted token, and what HyperShift writes beside it.

Source: openshift/hypershift at 3ee9615, hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go
and, of cloud configs, control-plane-operator/controllers/hostedcontrolplane/v2.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final

from identity.catalogue import FEDERATED_AUDIENCE
from identity.catalogue_rows import CloudConfigKind, ControlPlaneIdentity, WorkloadColumns
from identity.clouds import DEFAULT_CLOUD
from identity.naming import parse_arm_id
from tests.consumers.consumer import Pod, program, row_of
from tests.consumers.programs import EtcdUpload
from tests.harness import LocalStack

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
    """The pod of an identity of `hc2`; its mounts are put into `tree`."""
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
