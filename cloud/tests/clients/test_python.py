"""Microsoft's management and Key Vault libraries for Python, unmodified, by Azure's public names."""

from __future__ import annotations

import json
from typing import Final

import pytest

from localcloud.core.clouds import LocalEnvironment
from tests.clients import install
from tests.clients.calls import GROUP, IDENTITY, KEY, VAULT, printed

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("identity")]

# As the libraries' documentation has it.
PROGRAM: Final = """
import json, os, sys
from azure.identity import EnvironmentCredential
from azure.keyvault.secrets import SecretClient
from azure.mgmt.authorization import AuthorizationManagementClient
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.keyvault import KeyVaultManagementClient
from azure.mgmt.msi import ManagedServiceIdentityClient
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.privatedns import PrivateDnsManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient
from azure.mgmt.resource.subscriptions import SubscriptionClient
from azure.mgmt.storage import StorageManagementClient


def names(items):
    return sorted(each.name for each in items)


vault, group = sys.argv[1:]
credential, subscription = EnvironmentCredential(), os.environ["AZURE_SUBSCRIPTION_ID"]
resources = ResourceManagementClient(credential, subscription)
identities = ManagedServiceIdentityClient(credential, subscription)
vaults = KeyVaultManagementClient(credential, subscription)
made = identities.user_assigned_identities.create_or_update(group, "by-a-library", {"location": "eastus"})
federated = identities.federated_identity_credentials.create_or_update(
    group, "by-a-library", "one",
    {"properties": {"issuer": "https://issuer.example.com/", "subject": "one", "audiences": ["a"]}},
)
secrets = SecretClient(f"https://{vault}.vault.azure.net", credential)
network = NetworkManagementClient(credential, subscription)
print(json.dumps({
    "subscriptions": [each.subscription_id for each in SubscriptionClient(credential).subscriptions.list()],
    "groups": names(resources.resource_groups.list()),
    "resources": names(resources.resources.list_by_resource_group(group)),
    "vault": vaults.vaults.get(group, vault).name,
    "vaults": names(vaults.vaults.list_by_resource_group(group)),
    "roles": len(list(AuthorizationManagementClient(credential, subscription).role_assignments.list_for_scope(
        f"/subscriptions/{subscription}", filter="atScope()"
    ))),
    "clusters": names(ContainerServiceClient(credential, subscription).managed_clusters.list()),
    "networks": names(network.virtual_networks.list_all()),
    "zones": names(PrivateDnsManagementClient(credential, subscription).private_zones.list()),
    "accounts": names(StorageManagementClient(credential, subscription).storage_accounts.list()),
    "secrets": sorted(each.name for each in secrets.list_properties_of_secrets()),
    "federated": federated.name,
    "identity": made.client_id,
}))
identities.user_assigned_identities.delete(group, "by-a-library")
"""
# The id of a key version is the argument.
ENCRYPTS: Final = """
import sys
from azure.identity import EnvironmentCredential
from azure.keyvault.keys.crypto import CryptographyClient, EncryptionAlgorithm

client = CryptographyClient(sys.argv[1], EnvironmentCredential())
encrypted = client.encrypt(EncryptionAlgorithm.rsa_oaep_256, b"a data encryption key")
print(client.decrypt(encrypted.algorithm, encrypted.ciphertext).plaintext.decode())
"""


def test_the_libraries_see_the_subscription_list_what_there_is_and_make_an_identity(
    local_cloud: LocalEnvironment,
) -> None:
    seen = json.loads(printed(local_cloud, str(install.python()), "-c", PROGRAM, VAULT, GROUP))

    assert seen["subscriptions"] == [local_cloud.subscription_id]
    assert seen["roles"]
    there = {"groups": GROUP, "resources": VAULT, "vaults": VAULT, "clusters": "aks-mgmt-local", "networks": "hc1-vnet"}
    for what, name in {**there, "secrets": "registry"}.items():
        assert name in seen[what], what
    assert seen["identity"]
    assert seen["federated"] == "one"


def test_the_key_vault_library_encrypts(local_cloud: LocalEnvironment) -> None:
    encrypted = printed(local_cloud, str(install.python()), "-c", ENCRYPTS, KEY, identity=IDENTITY)

    assert encrypted.strip() == "a data encryption key"
