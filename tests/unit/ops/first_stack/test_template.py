"""The file of a new stack is a configuration without a problem, small, and in a form that the engine keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import yaml

from identity.settings import ConfigurationError, Settings, load_settings
from identity.settings.stack_file import written
from ops.first_stack.template import SAMPLE, Answers, Side, answered, stack_text
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError
from tests.unit.identity.settings.world import SUBSCRIPTION, TENANT, as_pulumi_passes_it

ZONE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/dns/providers/Microsoft.Network/dnszones/dev.contoso.com"
DEV = Answers(
    stack="dev",
    prefix="contoso",
    location="westeurope",
    cluster="hc1",
    side=Side.HYPERSHIFT,
    management_cluster="aks-dev/mgmt",
    dns_zone=ZONE,
    tenant_id=TENANT,
    subscription_id=SUBSCRIPTION,
)
IMAGE = "contoso.azurecr.io/idstack/credential-probe:0.1.0"
BACKENDS = (None, "azblob://state?storage_account=contosostate", "file:///var/lib/idstack")
KEYS = (None, "azurekeyvault://kv-contoso.vault.azure.net/keys/pulumi")
CLOUDS = ("AzurePublicCloud", "AzureUSGovernmentCloud")
COMBINATIONS = [
    replace(
        DEV, side=side, image=IMAGE if side is Side.STACK else None, backend=backend, secrets_provider=key, cloud=cloud
    )
    for side, backend, key, cloud in product(Side, BACKENDS, KEYS, CLOUDS)
]


def load(text: str) -> Settings:
    own = {key: value for key, value in written(text).items() if ":" not in key}
    return load_settings(as_pulumi_passes_it(own), secret_keys=(), local=None, written=own)


def values(found: Any) -> Iterator[Any]:
    """The values of a document, lists of words as one."""
    if isinstance(found, dict):
        for value in found.values():
            yield from values(value)
    elif isinstance(found, list) and isinstance(found[0], dict):
        for entry in found:
            yield from values(entry)
    else:
        yield found


@pytest.mark.parametrize("answers", COMBINATIONS, ids=[str(number) for number in range(len(COMBINATIONS))])
def test_every_file_is_a_configuration_that_the_engine_leaves_as_it_is(answers: Answers) -> None:
    settings = load(stack_text(answers))
    lines = stack_text(answers).splitlines()

    assert (settings.cluster_side, settings.cloud.name) == (answers.side.value, answers.cloud)
    [cluster] = settings.hosted_clusters
    assert (cluster.issuer, cluster.infrastructure) == ("create", "create")
    assert all(line.strip() for line in lines)
    assert not re.search(r"^  \S+: (true|false)$", "\n".join(lines), re.MULTILINE)
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line.lstrip().startswith("#"):
            assert indentation(line) == indentation(after), "a comment stands above its own key"
    document = yaml.safe_load(stack_text(replace(DEV, side=answers.side, image=IMAGE, backend=BACKENDS[1])))
    assert len(list(values(document["config"]))) <= 20


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def test_the_sample_of_this_project_is_such_a_file_of_placeholders() -> None:
    """`idstack init dev` may replace it, and nothing else."""
    assert (ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8") == stack_text(SAMPLE)
    with pytest.raises(ConfigurationError) as refused:
        load(stack_text(SAMPLE))

    asked = {"tenantId", "subscriptionId", "resourceGroup", "vault", "managementCluster", "hostedClusters"}
    assert {str(problem.place[0]) for problem in refused.value.problems} == asked
    assert all("the placeholder of the example" in problem.found for problem in refused.value.problems)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, None),
        ({"stack": "x" * 20}, f"kv-contoso-{'x' * 20}"),
        ({"cluster": "c" * 30}, f"contosodev{'c' * 30}"),
    ],
    ids=["short", "a long stack", "a long cluster"],
)
def test_a_name_that_azure_refuses_for_its_length_is_known(changes: dict[str, Any], name: str | None) -> None:
    assert replace(DEV, **changes).too_long == name
    with pytest.raises(CommandError, match='--side: found "both"; accepted: hypershift, its operators; or stack,'):
        answered({"side": "both"}, (), None)
