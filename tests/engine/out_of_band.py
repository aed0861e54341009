"""Somebody who changes things behind a stack's back."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import requests
from azure.identity import CertificateCredential
from azure.keyvault.secrets import SecretClient
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from identity.clouds import LocalEnvironment
from identity.naming import role_definition_id
from localcloud.testing.running import StateDirectory
from tests.harness import LocalStack


class OutOfBand:
    """Somebody with the deployer's rights, or the subscription owner's, and tools of their own."""

    def __init__(self, stack: LocalStack, *, is_owner: bool = False) -> None:
        self._stack = stack
        local = stack.environment
        client, certificate = local.deployer_client_id, local.deployer_certificate
        if is_owner:
            client = stack.local_cloud("exec", "--as", "owner", "--", "printenv", "AZURE_CLIENT_ID").strip()
            certificate = str(StateDirectory(stack.state).owner_file)
        self._credential = credential_of(local, client, certificate)

    def arm(self, method: str, resource_id: str, api_version: str, body: Any = None) -> Any:
        """A request to ARM; its answer."""
        return self._request(
            method,
            f"{self._stack.environment.arm_endpoint}{resource_id}",
            "https://management.core.windows.net//.default",
            params={"api-version": api_version},
            json=body,
        )

    def graph(self, method: str, path: str, body: Any = None) -> Any:
        """A request to Microsoft Graph; its answer."""
        url = f"{self._stack.environment.graph_endpoint}/v1.0{path}"
        return self._request(method, url, "https://graph.microsoft.com/.default", json=body)

    def vault(self, method: str, vault: str, path: str, body: Any = None) -> Any:
        """A request to a vault's data plane; its answer."""
        return self._request(
            method,
            f"{self._stack.environment.key_vault_endpoint}{path}",
            "https://vault.azure.net/.default",
            params={"api-version": "7.4"},
            headers={"Host": f"{vault}.vault.azure.net"},
            json=body,
        )

    def secrets(self) -> SecretClient:
        """The stack's vault."""
        local = self._stack.environment
        return SecretClient(
            local.key_vault_endpoint, self._credential, verify_challenge_resource=False, connection_verify=local.ca_file
        )

    def credentials(self) -> list[str]:
        """The documents in the stack's vault."""
        with self.secrets() as secrets:
            names = [properties_of_secret.name for properties_of_secret in secrets.list_properties_of_secrets()]
            return [secrets.get_secret(name).value or "" for name in names if name]

    def application(self, name: str, certificate_pem: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """A new application with a certificate, which not every replica knows yet, and its service principal."""
        application = self.graph("POST", "/applications", {"displayName": name})
        principal = self.graph("POST", "/servicePrincipals", {"appId": application["appId"]})
        der = x509.load_pem_x509_certificate(certificate_pem.encode()).public_bytes(Encoding.DER)
        key = {"type": "AsymmetricX509Cert", "usage": "Verify", "key": base64.b64encode(der).decode()}
        self.graph("PATCH", f"/applications/{application['id']}", {"keyCredentials": [key]})
        return application, principal

    def assign(self, scope: str, role: str, object_id: str, name: str | None = None) -> str:
        """Assign a role, by its GUID, to a service principal; returns the assignment's id."""
        assignment = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name or uuid.uuid4()}"
        properties = {
            "principalId": object_id,
            "principalType": "ServicePrincipal",
            "roleDefinitionId": role_definition_id(self._stack.environment.subscription_id, role),
        }
        self.arm("PUT", assignment, "2022-04-01", {"properties": properties})
        return assignment

    def custom_role(self, name: str, permission: Mapping[str, Any], scopes: Sequence[str]) -> str:
        """Make a role that can be assigned at these scopes; returns its GUID."""
        guid = str(uuid.uuid4())
        properties = {"roleName": name, "type": "CustomRole", "permissions": [permission], "assignableScopes": scopes}
        path = role_definition_id(self._stack.environment.subscription_id, guid)
        self.arm("PUT", path, "2022-04-01", {"properties": properties})
        return guid

    def _request(
        self, method: str, url: str, scope: str, headers: Mapping[str, str] | None = None, **options: Any
    ) -> Any:
        headers = {"Authorization": f"Bearer {self._credential.get_token(scope).token}", **(headers or {})}
        verify = self._stack.environment.ca_file
        answer = requests.request(method, url, headers=headers, verify=verify, timeout=30, **options)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None


def credential_of(local: LocalEnvironment, client_id: str, certificate: str) -> CertificateCredential:
    """An application's sign-in with a certificate, which is named by its file."""
    return CertificateCredential(
        local.tenant_id,
        client_id,
        certificate,
        authority=local.authority_host,
        disable_instance_discovery=True,
        connection_verify=local.ca_file,
    )
