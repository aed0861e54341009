"""HyperShift's own scripts, as they are, on the local cloud; then what they made is adopted."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from identity.catalogue import DATA_PLANE
from localcloud.testing.upstream_definitions import hypershift
from tests.engine.adoption import SCRIPTED, Adoption, adopted_cluster
from tests.engine.hypershift_scripts import PREFIX, HyperShiftScripts
from tests.harness import LocalStack
from tools import clients

GROUP: Final = "identity-local"


class TheScripts(HyperShiftScripts):
    """Runs the scripts with the Azure CLI, signed in as the deployer; roles and the add-on's right come as before."""

    def __init__(self, stack: LocalStack, directory: Path) -> None:
        super().__init__(stack, directory)
        self._stack = stack
        self._directory = directory

    def run(self, infra_id: str, issuer_url: str, add_on_object_id: str) -> None:
        """Make everything and write both files."""
        # The scripts take a person's rights for granted; `az ad signed-in-user` has nobody to show here. The script for
        # the key of etcd does not wait for the role that it assigns.
        self.administer(f"/subscriptions/{self._stack.environment.subscription_id}")
        for script in ("setup_MIv3_kv.sh", "setup_dataplane_identities.sh", "setup_aks_mi.sh"):
            self.script(hypershift() / "contrib/managed-azure" / script, OIDC_ISSUER_URL=issuer_url)
        written = yaml.safe_load(self.control_plane_file.read_text(encoding="utf-8"))
        for row in SCRIPTED:
            principal = self.graph("GET", f"/servicePrincipals(appId='{written[row.field]['clientID']}')")
            assert row.hypershift is not None
            self.assign_as_the_cli(infra_id, row.component, row.hypershift, principal["id"])
        path = f"{self.group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
        identities = [identity["properties"] for identity in self.arm("GET", path, "2023-01-31")["value"]]
        managed = {identity["clientId"]: identity["principalId"] for identity in identities}
        named = yaml.safe_load(self.data_plane_file.read_text(encoding="utf-8"))
        for data_row in DATA_PLANE:
            self.assign_as_the_cli(infra_id, data_row.component, data_row.hypershift, managed[named[data_row.field]])
        self.let_read_the_vault(add_on_object_id)

    def script(self, script: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run one of them with what `vars.sh` would say."""
        local = self._stack.environment
        environment = {
            "PATH": os.pathsep.join([str(clients.azure_cli()), os.environ["PATH"]]),
            "PREFIX": PREFIX,
            "SUBSCRIPTION_ID": local.subscription_id,
            "PERSISTENT_RG_NAME": GROUP,
            "LOCATION": "eastus",
            "CP_OUTPUT_FILE": str(self.control_plane_file),
            "DP_OUTPUT_FILE": str(self.data_plane_file),
            "PYTHONPATH": str(self._stack.root),
            **variables,
        }
        command = ("-m", "ops", "local", "exec", "--", "bash", str(script))
        return self._stack.run(self._stack.python, *command, variables=environment, directory=self._directory)


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adoption]:
    root, directory = tmp_path_factory.mktemp("stack"), tmp_path_factory.mktemp("scripts")
    with adopted_cluster(TheScripts, root, directory) as adoption:
        yield adoption


def test_what_the_scripts_made_is_adopted(adopted: Adoption) -> None:
    assert set(adopted.steps.values()) == {"create", "update"}
    assert adopted.before <= adopted.stack.inventory()
    assert adopted.stack.preview() == {}
    assert adopted.client.failures == []


def test_both_credentials_of_each_identity_sign_in(adopted: Adoption) -> None:
    for row in SCRIPTED:
        adopted.require_both_sign_in(row)


def test_the_script_for_the_key_of_etcd_makes_one(adopted: Adoption, tmp_path: Path) -> None:
    scripts = adopted.scripts
    assert isinstance(scripts, TheScripts)
    deployer = scripts.graph("GET", f"/servicePrincipals(appId='{scripts.deployer}')")["id"]
    kms = scripts.graph("GET", f"/servicePrincipals(appId='{adopted.stack.control_plane['kms']['clientID']}')")["id"]
    text = (hypershift() / "contrib/managed-azure/setup_etcd_kv.sh").read_text(encoding="utf-8")
    # It asks to be edited.
    for name, value in {
        "KV_NAME": "kv-by-script",
        "SUBSCRIPTION_ID": adopted.stack.environment.subscription_id,
        "USER_OBJECT_ID": deployer,
        "OBJECT_ID": kms,
    }.items():
        text = re.sub(rf'^{name}=".*"$', f'{name}="{value}"', text, flags=re.MULTILINE)
    edited = tmp_path / "setup_etcd_kv.sh"
    edited.write_text(text, encoding="utf-8")

    scripts.script(edited)

    [key] = scripts.vault("GET", "kv-by-script", "/keys")["value"]
    assert key["kid"].endswith("/keys/example-key")
