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

_ACCOUNT: Final = json.dumps({"tenantId": TENANT, "id": SUBSCRIPTION, "environmentName": "AzureCloud"})
_AZ: Final = f"#!/bin/sh\n[ \"$*\" = 'account show --output json' ] && echo '{_ACCOUNT}'\n"
_PLUGIN: Final = f"""\
#!/bin/sh
cd / && IDSTACK_LOCAL_ENVIRONMENT=%s PYTHONPATH={PROJECT}/cloud:{PROJECT} exec {PROJECT}/.venv/bin/python -P -c '
import runpy, emulated.client
emulated.client.LOCAL_TENANT_ID = "{TENANT}"
runpy.run_module("emulated.%s", run_name="__main__")
' "$@"
"""
_SEED: Final[dict[str, Any]] = {
    "tenantId": TENANT,
    "subscriptionId": SUBSCRIPTION,
    "location": "westeurope",
    "deployerRoles": ["Contributor", "User Access Administrator", "Key Vault Administrator"],
    "clusters": [{"name": "mgmt", "resourceGroup": "aks-dev"}],
    "resources": [{"type": "Microsoft.Network/dnszones", "name": "dev.contoso.com", "resourceGroup": "dns"}],
}


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalStack]:
    stack, home = empty_project(tmp_path), {"PULUMI_HOME": str(tmp_path / "home")}
    scripts = {tmp_path / "bin/az": _AZ}
    for plugin in plugins.installed():
        script = _PLUGIN % (stack.state / "environment.json", plugin.name.replace("-", "_"))
        scripts[plugins.cached(plugin.name, plugin.version, home)] = script
    for file, script in scripts.items():
        file.parent.mkdir(parents=True)
        file.write_text(script, encoding="utf-8")
        file.chmod(0o755)
    try:
        seed(stack, "aks-dev", "dns")
        yield stack
    finally:
        stack.local_cloud("stop", "--remove")


def seed(stack: LocalStack, *groups: str) -> None:
    file = stack.root / "seed.yaml"
    file.write_text(yaml.safe_dump({**_SEED, "resourceGroups": groups}), encoding="utf-8")
    stack.local_cloud("start", "--seed", str(file))


def idstack(stack: LocalStack, *arguments: str, ends: int = 0) -> str:
    """Both outputs of a command, by Azure's public names, signed in as the deployer."""
    home = (f"PULUMI_HOME={stack.root}/home", "PULUMI_CONFIG_PASSPHRASE=known", f"PYTHONPATH={stack.root}")
    without = [f"--unset={name}" for name in ("ARM_SUBSCRIPTION_ID", "PULUMI_BACKEND_URL", "PULUMI_STACK")]
    given = ("env", *without, *home, f"PATH={stack.root}/bin:{stack.variables['PATH']}")
    python = stack.python
    done = stack.run(python, "-m", "localcloud", "exec", "--", *given, python, "-m", "ops", *arguments, check=False)
    assert done.returncode == ends, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def test_a_refused_preview_names_all_that_is_missing_and_the_next_is_accepted(stack: LocalStack) -> None:
    (stack.root / "backend").mkdir()
    options = ("--yes", "--no-pin", "--prefix", "contoso", "--location", "westeurope", "--dns-zone", ZONE)
    there = ("--management-cluster", "aks-dev/mgmt", "--backend", f"file://{stack.root}/backend")
    printed = idstack(stack, "init", "dev", *options, *there)
    frozen = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/dns"
    held = HeldFaults(
        unregistered_providers=("Microsoft.Storage",), locks={frozen: Lock.READ_ONLY}, certificate_days=30
    )
    with dialled(stack, held):
        refused = idstack(stack, "preview", "--stack", "dev", ends=1)
    seed(stack, "aks-dev", "dns", "contoso-dev")
    accepted = idstack(stack, "preview", "--stack", "dev")

    assert "az group create --name contoso-dev --location westeurope" in printed
    assert "The stack's configuration has 4 problems; nothing was changed." in refused
    assert 'the resource group "contoso-dev", which does not exist' in refused
    assert "not registered to use Microsoft.Storage" in refused
    assert f"whose locks forbid changes: {frozen}" in refused
    assert "--path credentials.lifetimeDays 30` and " in refused
    assert "150 to create" in accepted
    assert "nodePoolManagement" in accepted.partition("cluster  identity")[2]
