"""The SecretProviderClasses, to the byte as HyperShift's operators write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit import cases
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import ADD_ON, IDENTITIES, TENANT

CLASS = "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass"

# Of the hypershift-operator, which annotates all that it writes (its createorupdate_annotation_enforcer.go); the other
# classes are the control-plane operator's.
ANNOTATED = {"managed-azure-cpo", "managed-azure-kms", "managed-azure-nodepool-management"}
SECRETS = {identity.secret_provider_class: f"{identity.secret_stem}-hc1-json" for identity in IDENTITIES}


def test_it_fetches_the_identitys_secret_as_the_key_vault_user(stack: RecordingMonitor) -> None:
    found = [resource.inputs for resource in stack.all(CLASS)]

    assert sorted(found, key=lambda inputs: str(inputs["metadata"]["name"])) == [
        of_the_operators(name, secret) for name, secret in sorted(SECRETS.items())
    ]


def of_the_operators(name: str, secret: str) -> dict[str, Any]:
    words = {"NAME": name, "SECRET": secret, "READER": ADD_ON["clientId"], "TENANT": TENANT}
    found: dict[str, Any] = cases.read(Path(__file__).with_name("secret-provider-class.yaml"), words)
    if name in ANNOTATED:
        found["metadata"]["annotations"] = {"hypershift.openshift.io/cluster": "clusters/hc1"}
    return found
