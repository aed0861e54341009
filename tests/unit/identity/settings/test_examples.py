"""The stack files of the repository and the examples of its documentation are configurations that work."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from identity.catalogue import CONTROL_PLANE, OPTIONAL
from identity.settings import ConfigurationError, Settings, load_settings
from tests.unit.identity.settings.world import LOCAL, TENANT

PROJECT = Path(__file__).resolve().parents[4]


def examples(page: str) -> list[str]:
    """The YAML of a page of the documentation."""
    return re.findall(
        r"^```yaml\n(.*?)^```$", next((PROJECT / "docs").rglob(page)).read_text(encoding="utf-8"), re.S | re.M
    )


EXAMPLES = examples("stacks.md")
DOMAINS, APPLIED, CREATED = examples("hypershift.md")
[WORKLOADS] = examples("hosted-clusters.md")


def load(document: Mapping[str, Any], **options: Any) -> Settings:
    """As Pulumi hands a stack file over."""
    config = {
        key.removeprefix("idstack:"): value if isinstance(value, str) else json.dumps(value)
        for key, value in document["config"].items()
        if key.startswith("idstack:")
    }
    return load_settings(config, **{"secret_keys": (), "local": None, **options})


def stack_file(stack: str) -> dict[str, Any]:
    sample = PROJECT / f"examples/stacks/Pulumi.{stack}.yaml"
    file = sample if sample.exists() else PROJECT / sample.name
    document: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("stack", ["dev", "stage", "prod"])
def test_the_example_of_an_environment_lacks_nothing_but_ids_of_your_own(stack: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(stack_file(stack))

    assert [
        problem for problem in refused.value.problems if "the placeholder of the example" not in problem.found
    ] == []


@pytest.mark.parametrize("stack", ["local", "local-both", "local-hypershift"])
def test_a_local_stack_is_ready_to_run(stack: str) -> None:
    assert load(stack_file(stack), local=LOCAL).cloud.name == "local"


@pytest.mark.parametrize("stack", ["dev", "stage", "prod", "local", "local-both", "local-hypershift"])
def test_every_stack_file_disables_the_default_providers(stack: str) -> None:
    config = stack_file(stack)["config"]

    assert config["pulumi:disable-default-providers"] == ["azure-native", "azuread", "kubernetes"]


def test_the_shared_stack_of_the_documentation_needs_no_more() -> None:
    shared = load(yaml.safe_load(EXAMPLES[0].replace("<uuid>", TENANT)))

    assert (shared.hosted_clusters, shared.shared_stack) == ((), None)


def test_the_documented_cluster_stack_only_leaves_out_what_dev_has() -> None:
    document = yaml.safe_load(EXAMPLES[1].replace("<uuid>", TENANT))
    [described] = document["config"]["idstack:hostedClusters"]
    [cluster] = stack_file("dev")["config"]["idstack:hostedClusters"]
    document["config"]["idstack:hostedClusters"] = json.loads(
        json.dumps([{**cluster, **described}])
        .replace("00000000-0000-0000-0000-000000000000", TENANT)
        .replace("0" * 32, "1" * 32)
    )

    assert load(document).shared_stack == "organization/idstack/shared-dev"


def test_the_cluster_of_the_documentation_can_be_made() -> None:
    [described] = examples("aks-access.md")
    settings = load(yaml.safe_load(described.replace("<uuid>", TENANT)))

    assert settings.management_cluster is not None
    assert settings.management_cluster.create is not None
    assert settings.management_cluster.create.azure_rbac


def test_the_second_local_stack_of_the_documentation_is_ready_to_run() -> None:
    settings = load(yaml.safe_load(EXAMPLES[2]), local=LOCAL)

    assert settings.shared_stack == "organization/idstack/local"
    assert settings.hosted_clusters[0].infra_id == "hc2"


def test_the_hosted_cluster_of_the_documentation_can_be_applied() -> None:
    document = stack_file("local")
    config = document["config"]
    [domains] = yaml.safe_load(DOMAINS.replace("<id>", config["idstack:subscriptionId"]))["idstack:hostedClusters"]
    config["idstack:hostedClusters"][0] |= {**domains, **yaml.safe_load(APPLIED), "dnsZoneResourceGroup": "dns"}
    config["idstack:clusterSide"] = "hypershift"

    settings = load(document, local=LOCAL)

    assert settings.writes_to_management_cluster
    assert settings.hosted_clusters[0].signing_key_reference == "hc1-signing-key"


def test_the_infrastructure_of_the_documentation_needs_no_more() -> None:
    document = stack_file("local")
    config = document["config"]
    [cluster] = config["idstack:hostedClusters"]
    for key in ("resourceGroup", "vnetID", "subnetID", "securityGroupID", "dnsZoneResourceGroup"):
        del cluster[key]
    described = CREATED.replace("<id>", config["idstack:subscriptionId"]).replace("<name>", "dns")
    cluster |= yaml.safe_load(described)

    [loaded] = load(document, local=LOCAL).hosted_clusters
    assert loaded.resource_group == f"hc1-{loaded.infra_id}"
    assert loaded.dns_zone_resource_group == "dns"


def test_the_optional_identities_of_the_documentation_can_be_switched_on() -> None:
    document = stack_file("local")
    config = document["config"]
    described = examples("optional-identities.md")[0].replace("<id>", config["idstack:subscriptionId"])
    cluster = config["idstack:hostedClusters"][0]
    seeded = {"group": "identity-local", "account": "backuplocal", "registry": "idstacklocal"}
    for name, value in {**seeded, "domain": "local.example.com"}.items():
        described = described.replace(f"<{name}>", value)
    changes = yaml.safe_load(described.replace("<issuer>", "oidc.example.com"))
    cluster["identities"] |= changes.pop("identities")
    cluster |= changes

    [loaded] = load(document, local=LOCAL).hosted_clusters
    assert all(loaded.identity(row).enabled for row in CONTROL_PLANE)
    assert loaded.optional_rows == OPTIONAL


def test_the_workload_of_the_documentation_fits_into_its_cluster() -> None:
    document = stack_file("local")
    document["config"]["idstack:hostedClusters"][0] |= yaml.safe_load(WORKLOADS)

    [workload] = load(document, local=LOCAL).hosted_clusters[0].workloads
    assert workload.identities == ("controlPlaneOperator", "kms")


def test_the_engine_knows_every_key_with_a_default_that_is_not_null() -> None:
    declared = yaml.safe_load((PROJECT / "Pulumi.yaml").read_text(encoding="utf-8"))["config"]

    assert list(declared) == [str(field.alias) for field in Settings.model_fields.values()]
    assert [
        key for key, setting in declared.items() if setting.get("default") is None or not setting["description"]
    ] == []
