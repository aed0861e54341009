"""The probes with which the local cloud plays a hosted control plane, on the local Kubernetes API."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from identity.catalogue import CONTROL_PLANE
from identity.clouds import LocalEnvironment
from localcloud.testing.kubernetes import RunningApi, hosted_tokens, write_kubeconfig
from ops.commands import token_probes
from ops.stack.errors import CommandError
from tests.unit.identity.settings.world import LOCAL, configuration, hosted_cluster, load

SUBJECTS = [subject.subject for row in CONTROL_PLANE if row.workload for subject in row.workload.subjects]
FIELDS = [row.field for row in CONTROL_PLANE if row.workload]
CLIENT = "6f2c1e7a-0000-4000-8000-00000000aaaa"
KEY = {"vaultSecretName": "hc2-key"}


def outputs(*fields: str, **changes: Any) -> Any:
    """A stack's with the self-managed cluster `hc2`, which has these identities."""
    cluster = {
        "namespace": "clusters",
        "dataPlane": dict.fromkeys(fields, CLIENT),
        **changes,
    }
    return {"clusterSide": "hypershift", "keyVaultName": "kv-identity", "hostedClusters": {"hc2": cluster}}


@pytest.fixture
def environment(api: RunningApi) -> LocalEnvironment:
    """The record of the local cloud whose API this is."""
    return replace(LOCAL, kubeconfig=str(api.kubeconfig))


def apply(environment: LocalEnvironment, described: Any, stack: str = "local", **changes: Any) -> set[str]:
    own = {"authentication": "workload-identities", "topology": "Public", "serviceAccountSigningKey": KEY}
    cluster = {name: value for name, value in {**hosted_cluster("hc2", **own), **changes}.items() if value is not None}
    settings = load(configuration(clusterSide="hypershift", hostedClusters=[cluster]))
    return {probe.cluster for probe in token_probes.apply(environment, stack, settings, described)}


def deployed(environment: LocalEnvironment) -> dict[str, Any]:
    """Pods by namespace and Deployment."""
    with config.new_client_from_config(environment.kubeconfig) as api:
        listed: Any = client.AppsV1Api(api).list_deployment_for_all_namespaces(_preload_content=False)
        spaces: Any = client.CoreV1Api(api).list_namespace(_preload_content=False)
    alive = {namespace["metadata"]["name"] for namespace in json.loads(spaces.data)["items"]}
    return {
        f"{probe['metadata']['namespace']}/{probe['metadata']['name']}": probe["spec"]["template"]["spec"]
        for probe in json.loads(listed.data)["items"]
        if probe["metadata"]["namespace"] in alive
    }


def test_each_service_account_has_a_probe_with_its_token(environment: LocalEnvironment) -> None:
    assert apply(environment, outputs(*FIELDS)) == {"hc2"}

    volumes = [pod["volumes"][0]["csi"] for pod in deployed(environment).values()]
    assert {volume["driver"] for volume in volumes} == {hosted_tokens.DRIVER}
    assert sorted(volume["volumeAttributes"]["subject"] for volume in volumes) == sorted(SUBJECTS)


def test_the_token_lies_where_the_real_pod_has_it(environment: LocalEnvironment) -> None:
    apply(environment, outputs("nodePoolManagement"))

    [(name, pod)] = deployed(environment).items()
    [container] = pod["containers"]
    assert name == "clusters-hc2/probe-node-pool-mgmt"
    assert container["args"][1] == "token:/var/run/secrets/openshift/serviceaccount/token"
    assert container["volumeMounts"][0]["mountPath"] == "/var/run/secrets/openshift/serviceaccount"
    assert {variable["name"]: variable.get("value") for variable in container["env"]} == {
        "POD_IP": None,
        "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.com/",
        "AZURE_TENANT_ID": "11111111-1111-4111-8111-111111111111",
        "AZURE_CLIENT_ID": CLIENT,
    }
    assert pod["volumes"][0]["csi"]["volumeAttributes"] == {
        "vaultName": "kv-identity",
        "secretName": "hc2-key",
        "issuer": "https://hc2.blob.core.windows.net/hc2",
        "subject": "system:serviceaccount:kube-system:capi-provider",
        "audience": "openshift",
        "path": "token",
    }


def test_what_the_stack_has_no_more_goes(environment: LocalEnvironment) -> None:
    apply(environment, outputs("disk", "ingress"))
    apply(environment, outputs("ingress"))
    assert list(deployed(environment)) == ["clusters-hc2/probe-ingress"]

    apply(environment, {**outputs(), "hostedClusters": {}})
    assert deployed(environment) == {}


def test_another_stacks_probes_stay(environment: LocalEnvironment) -> None:
    apply(environment, outputs("ingress"), stack="other")
    apply(environment, outputs("ingress", namespace="own"))
    token_probes.remove(environment, "local")

    assert list(deployed(environment)) == ["clusters-hc2/probe-ingress"]


@pytest.mark.parametrize(
    "changes",
    [{"serviceAccountSigningKey": None}, {"authentication": "managed-identities", "topology": None}],
    ids=["no signing key", "certificates"],
)
def test_a_cluster_without_tokens_of_the_stack_has_no_probes(
    environment: LocalEnvironment, changes: dict[str, Any]
) -> None:
    assert apply(environment, outputs(*FIELDS), **changes) == set()
    assert deployed(environment) == {}


def test_a_refusal_of_the_api_is_an_error_in_words(api: RunningApi, tmp_path: Path) -> None:
    stranger = write_kubeconfig(tmp_path / "stranger", api.server, api.ca_file, "another")

    with pytest.raises(CommandError, match=r"^the probes of workload identities: .* does not accept the token"):
        token_probes.remove(replace(LOCAL, kubeconfig=str(stranger)), "local")
