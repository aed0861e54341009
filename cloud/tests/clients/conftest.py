"""A local cloud of the clients' own, and an identity with two roles whose credential document is in a vault."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from localcloud.azure.shared.faults import FAULTS_VARIABLE
from localcloud.core.clouds import LocalEnvironment
from localcloud.testing.azure import built_in_roles
from tests.clients.calls import GROUP, VAULT
from tests.conftest import administered_cloud
from tests.token_client import deployer_credential

_ROLES: Final = ("Azure Red Hat OpenShift Disk Storage Operator", "Key Vault Crypto User")


@pytest.fixture(scope="session")
def local_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEnvironment]:
    """Its log has the requests of clients alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FAULTS_VARIABLE, json.dumps({"role_delay": 0}))
        with administered_cloud(tmp_path_factory.mktemp("clients")) as environment:
            yield environment


@pytest.fixture(scope="session")
def identity(local_cloud: LocalEnvironment) -> dict[str, str]:
    """The credential document of `calls.IDENTITY`: it may list disks, and use the keys of the vault."""
    text = Path(local_cloud.state_dir, "run/msi/hc1-image-registry.json").read_text(encoding="utf-8")
    document: dict[str, str] = json.loads(text)
    with httpx.Client(verify=local_cloud.ca_file, trust_env=False) as http:
        scope = f"/subscriptions/{local_cloud.subscription_id}/resourceGroups/{GROUP}/providers"
        vault = {"Host": f"{VAULT}.vault.azure.net", **_bearer(local_cloud, "https://vault.azure.net")}
        secret = f"{local_cloud.key_vault_endpoint}/secrets/registry?api-version=7.4"
        http.put(secret, headers=vault, json={"value": text}).raise_for_status()
        for role in built_in_roles().values():
            if role.role_name in _ROLES:
                properties: dict[str, Any] = {
                    "principalId": document["object_id"],
                    "principalType": "ServicePrincipal",
                    "roleDefinitionId": f"{scope}/Microsoft.Authorization/roleDefinitions/{role.guid}",
                }
                url = f"{local_cloud.arm_endpoint}{scope}/Microsoft.Authorization/roleAssignments/{uuid.uuid4()}"
                arm = _bearer(local_cloud, "https://management.azure.com")
                body = {"properties": properties}
                http.put(f"{url}?api-version=2022-04-01", headers=arm, json=body).raise_for_status()
    return document


def _bearer(local_cloud: LocalEnvironment, audience: str) -> dict[str, str]:
    token = deployer_credential(local_cloud).get_token(f"{audience}/.default").token
    return {"Authorization": f"Bearer {token}"}
