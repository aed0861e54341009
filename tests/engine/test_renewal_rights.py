"""A pipeline with the custom role of `idstack rbac --azure --for renewals`: it renews, and can do nothing else."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from localcloud.testing.azure import WRITE_OWNED, assemble
from localcloud.testing.faults import NO_DELAYS
from localcloud.testing.running import StateDirectory
from ops.commands.renew import RenewalRun
from ops.renewal.guard import renewable
from ops.stack import engine
from tests.engine.out_of_band import OutOfBand
from tests.engine.reader import Reader, signed_up
from tests.engine.rotations import LIFE, SETTLED, Ageing
from tests.engine.small_stack import documents, small_stack
from tests.harness import LocalStack

pytestmark = pytest.mark.nightly


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalStack]:
    """A stack with objects in its management cluster, whose renewals come a day after the clock's time."""
    with small_stack(tmp_path, "stack") as stack, stack.configured(credentials={**LIFE, "propagation": SETTLED}):
        yield stack


def pipeline_of(stack: LocalStack, folder: Path) -> Reader:
    """An application with what the command prints: the custom role where it says, and what its note asks of Entra ID.

    The tenant's administrator makes it, who grants the permission in Graph behind Graph's back: it is not emulated.
    """
    stack.administer()
    administrator = OutOfBand(stack)
    renewals = signed_up(administrator, stack, "renewals", folder)
    scopes = _grant(stack, administrator, renewals.object_id)
    with closing(StateDirectory(stack.state).open_store()) as store:
        assemble(store, NO_DELAYS, authority_host="").directory.grant(renewals.object_id, WRITE_OWNED)
    for resource in stack.resources():
        if resource["type"] == "azuread:index/application:Application":
            owner = f"{stack.environment.graph_endpoint}/v1.0/directoryObjects/{renewals.object_id}"
            administrator.graph("POST", f"{resource['id']}/owners/$ref", {"@odata.id": owner})
    renewals.await_rights(*scopes)
    return renewals


def _grant(stack: LocalStack, administrator: OutOfBand, object_id: str) -> list[str]:
    """What the lines of `idstack rbac` do in Azure; returns the scopes."""
    options = ("--azure", "--for", "renewals", "--principal-type", "ServicePrincipal")
    printed = [line for line in stack.idstack("rbac", object_id, *options).stdout.splitlines() if line[0] != "#"]
    create, *assignments = map(shlex.split, printed)
    role: dict[str, Any] = json.loads(create[-1])
    permissions = {key[0].lower() + key[1:]: role[key] for key in role if key.endswith("ctions")}
    guid = administrator.custom_role(role["Name"], permissions, role["AssignableScopes"])
    scopes = [words[words.index("--scope") + 1] for words in assignments]
    for scope in scopes:
        administrator.assign(scope, guid, object_id)
    return scopes


def renew(pipeline: Reader) -> None:
    """What `idstack renew` does between its table and its check of the commit, signed in as the pipeline.

    The command itself would sign in as the local cloud's own deployer.
    """
    stack = pipeline.stack
    with pytest.MonkeyPatch.context() as patch, (stack.state / "renewals.log").open("a") as log:
        patch.setenv("LOCALCLOUD_STATE_DIR", str(stack.state))
        patch.setattr(engine.Engine, "environment", property(lambda _: pipeline.variables))
        of_the_pipeline = engine.Engine(stack.name, stack.root, output=log.fileno())
        RenewalRun(of_the_pipeline, Console(file=log)).renew(renewable(of_the_pipeline.resources()))


def test_the_role_for_renewals_renews_and_creates_nothing(
    stack: LocalStack, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ageing = Ageing(stack, datetime.now(UTC) - timedelta(days=5), monkeypatch)

    def thumbprints() -> dict[str, str]:
        return {name: row["thumbprint"] for name, row in stack.control_plane.items()}

    ageing.pass_a_day()
    stack.up()
    pipeline = pipeline_of(stack, tmp_path_factory.mktemp("renewals"))
    # The third takes the place of the first certificate, and disables the versions before the previous one.
    for _ in range(3):
        before = thumbprints()
        ageing.pass_a_day()
        renew(pipeline)
        renewed = {name for name, thumbprint in thumbprints().items() if thumbprint != before[name]}
        assert renewed == {"cloudProvider", "nodePoolManagement"}
    secret = stack.resource("hc1-cloud-provider-credential-secret")["id"].rpartition("/")[2]
    assert pipeline.vault("GET", f"/secrets/{secret}").status_code == 403, "it reads no credential"

    before_up = documents(stack, "arm")
    with stack.configured(keyVaultUserScope="secrets"):
        refused = stack.up(check=False, **pipeline.variables)

    assert refused.returncode != 0
    assert "AuthorizationFailed" in refused.stdout
    assert "Microsoft.Authorization/roleAssignments/write" in refused.stdout
    assert documents(stack, "arm") == before_up
