"""A vault's list is read to its end: each page names the next by the vault's own address, with its port."""

from __future__ import annotations

from identity.access.azure_client import AzureClient
from identity.clouds import Cloud
from localcloud.tests.arm_world import ArmWorld, world
from localcloud.tests.hosts import Certificates, Serve
from tests.unit.azure_world import IssuedTokens, cloud

__all__ = ["cloud", "world"]


def test_a_next_page_is_read_by_the_address_that_the_vault_gives(
    world: ArmWorld, cloud: Cloud, certificates: Certificates, serve: Serve
) -> None:
    world.create_vault()
    made = {world.vault("PUT", "/secrets/one", {"value": "v"}).json()["id"] for _ in range(27)}
    here = Cloud(**{**vars(cloud), "vault_endpoint": serve(world.keyvault)})

    with AzureClient(here, IssuedTokens(world, world.deployer), str(certificates.ca_file)) as azure:
        first = azure.vault("kv-idstack-local", "GET", "/secrets/one/versions")
        assert first is not None
        second = azure.vault("kv-idstack-local", "GET", first["nextLink"])

    assert second is not None
    assert second["nextLink"] is None
    assert {each["id"] for each in first["value"] + second["value"]} == made
