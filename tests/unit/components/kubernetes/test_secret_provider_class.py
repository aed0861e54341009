"""The SecretProviderClasses, to the byte as HyperShift's operators write them."""

from __future__ import annotations

import pytest

from components.kubernetes.cluster_side import objects
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import ADD_ON, IDENTITIES, TENANT

CLASS = "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass"

# Of the hypershift-operator, which annotates all that it writes (its createorupdate_annotation_enforcer.go); the other
# classes are the control-plane operator's.
ANNOTATED = {"managed-azure-cpo", "managed-azure-kms", "managed-azure-nodepool-management"}
SECRETS = {identity.secret_provider_class: f"{identity.secret_stem}-hc1-json" for identity in IDENTITIES}


def test_there_is_one_for_each_identity_in_the_control_planes_namespace(stack: RecordingMonitor) -> None:
    metadata = [resource.inputs["metadata"] for resource in stack.all(CLASS)]

    assert sorted(meta["name"] for meta in metadata) == sorted(SECRETS)
    assert {meta["namespace"] for meta in metadata} == {"clusters-hc1"}


@pytest.mark.parametrize("name", SECRETS)
def test_it_fetches_the_identitys_secret_as_the_key_vault_user(stack: RecordingMonitor, name: str) -> None:
    found = next(resource.inputs for resource in stack.all(CLASS) if resource.inputs["metadata"]["name"] == name)

    annotations = {"annotations": {"hypershift.openshift.io/cluster": "clusters/hc1"}} if name in ANNOTATED else {}
    assert found == {
        "apiVersion": "secrets-store.csi.x-k8s.io/v1",
        "kind": "SecretProviderClass",
        # Neither labels nor `secretObjects`: there is no copy in a Kubernetes Secret.
        "metadata": {"name": name, "namespace": "clusters-hc1", **annotations},
        "spec": {
            "provider": "azure",
            "parameters": {
                "usePodIdentity": "false",
                "useVMManagedIdentity": "true",
                "userAssignedIdentityID": ADD_ON["clientId"],
                "keyvaultName": "kv-idstack-dev",
                "tenantId": TENANT,
                "objects": "\narray:\n"
                "  - |\n"
                f"    objectName: {SECRETS[name]}\n"
                "    objectEncoding: utf-8\n"
                "    objectType: secret\n",
            },
        },
    }


@pytest.mark.parametrize(("encoding", "length"), [("utf-8", 90), ("hex", 88), ("base64", 91)])
def test_objects_is_75_bytes_and_the_two_names(encoding: str, length: int) -> None:
    text = objects("cpo-x-json", encoding)

    assert len(text.encode()) == length
    assert f"    objectEncoding: {encoding}\n" in text
