"""A person's first day: `init` with the Azure CLI's login, a refused preview with all that is missing, an accepted one.

Azure's public names lead to a local cloud in a tenant of its own. `az` and Azure's plugins have stand-ins: the one says
who is signed in, the others are the emulated ones, of which each takes that tenant for its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from localcloud.testing.faults import HeldFaults, Lock
from ops.stack import plugins
from tests.engine.held_faults import dialled
from tests.engine.test_first_stack import SUBSCRIPTION, TENANT, ZONE
from tests.harness import PROJECT, LocalStack, empty_project

pytestmark = pytest.mark.nightly

_ACCOUNT: Final = {"tenantId": TENANT, "id": SUBSCRIPTION, "environmentName": "AzureCloud"}
_PLUGIN: Final = """\
#!/bin/sh
cd / && IDSTACK_LOCAL_ENVIRONMENT={record} PYTHONPATH={project}/cloud:{project} exec {python} -P -c '
import runpy, emulated.client
emulated.client.LOCAL_TENANT_ID = "{tenant}"
runpy.run_module("emulated.{module}", run_name="__main__")
' "$@"
"""
_SEED: Final[dict[str, Any]] = {
    "tenantId": TENANT,
    "subscriptionId": SUBSCRIPTION,
    "location": "westeurope",
    "resourceGroups": ["aks-dev", "dns"],
    "deployerRoles": ["Contributor", "User Access Administrator", "Key Vault Administrator"],
    "clusters": [{"name": "mgmt", "resourceGroup": "aks-dev"}],
    "resources": [{"type": "Microsoft.Network/dnszones", "name": "dev.contoso.com", "resourceGroup": "dns"}],
}


class FirstDay:
    """What a person types in a checkout in `stack.root`."""

    def __init__(self, stack: LocalStack) -> None:
        self.stack, self.root = stack, stack.root
        self._executable(
            "az", f'#!/bin/sh\n[ "$*" = "account show --output json" ] && echo \'{json.dumps(_ACCOUNT)}\'\n'
        )
        record = stack.state / "environment.json"
        for name in plugins.NAMES:
            home = {"PULUMI_HOME": str(self.root / "home")}
            file = plugins.cached(name, plugins.installed()[plugins.NAMES.index(name)].version, home)
            names = {"project": PROJECT, "python": stack.python, "module": name.replace("-", "_")}
            self._executable(str(file), _PLUGIN.format(record=record, tenant=TENANT, **names))

    def _executable(self, name: str, script: str) -> None:
        file = self.root / "bin" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(script, encoding="utf-8")
        file.chmod(0o755)

    def seed(self, **more: Any) -> None:
        file = self.root / "seed.yaml"
        file.write_text(yaml.safe_dump({**_SEED, **more}), encoding="utf-8")
        self.stack.local_cloud("start", "--seed", str(file))

    def idstack(self, *arguments: str, ends: int = 0) -> str:
        """Both outputs of a command, by Azure's public names, signed in as the deployer."""
        own = {"PULUMI_HOME": self.root / "home", "PULUMI_CONFIG_PASSPHRASE": "of the test", "PYTHONPATH": self.root}
        given = [f"{name}={value}" for name, value in own.items()]
        path = f"PATH={self.root / 'bin'}:{self.stack.variables['PATH']}"
        without = [f"--unset={name}" for name in ("ARM_SUBSCRIPTION_ID", "PULUMI_BACKEND_URL", "PULUMI_STACK")]
        python = self.stack.python
        command = (python, "-m", "localcloud", "exec", "--", "env", *without, *given, path, python, "-m", "ops")
        done = self.stack.run(*command, *arguments, check=False)
        assert done.returncode == ends, f"{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture
def day(tmp_path: Path) -> Iterator[FirstDay]:
    stack = empty_project(tmp_path)
    try:
        day = FirstDay(stack)
        day.seed()
        yield day
    finally:
        stack.local_cloud("stop", "--remove")


def test_a_refused_preview_names_all_that_is_missing_and_the_next_is_accepted(day: FirstDay) -> None:
    (day.root / "backend").mkdir()
    options = ("--management-cluster", "aks-dev/mgmt", "--dns-zone", ZONE, "--backend", (day.root / "backend").as_uri())
    printed = day.idstack(
        "init", "dev", "--yes", "--no-pin", "--prefix", "contoso", "--location", "westeurope", *options
    )
    assert "az group create --name contoso-dev --location westeurope" in printed
    frozen = {f"/subscriptions/{SUBSCRIPTION}/resourceGroups/dns": Lock.READ_ONLY}
    with dialled(day.stack, HeldFaults(unregistered_providers=("Microsoft.Storage",), locks=frozen)):
        refused = day.idstack("preview", "--stack", "dev", ends=1)
    day.seed(resourceGroups=["aks-dev", "dns", "contoso-dev"])
    accepted = day.idstack("preview", "--stack", "dev")

    assert "The stack's configuration has 3 problems; nothing was changed." in refused
    for found in (
        'the resource group "contoso-dev", which does not exist',
        "not registered to use Microsoft.Storage",
        f"locks forbid changes: {next(iter(frozen)).lower()}",
    ):
        assert f"{found}" in refused
    assert "150 to create" in accepted
    assert "nodePoolManagement" in accepted.partition("cluster  identity")[2]
