"""What HyperShift's CLI makes for a self-managed cluster, adopted by a stack and given back to the CLI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from identity.credentials.service_account_key import make
from localcloud.testing.running import ClusterKind
from tests.harness import LocalStack, running_stack

_ISSUER: Final = "https://hc3oidc.blob.core.windows.net/hc3oidc"
_CREDENTIALS, _IAM, _INFRASTRUCTURE = "azure-creds.json", "workload-identities.json", "infra.yaml"
# Somebody who administers the subscription. The file of HyperShift's documentation has a client secret as well; without
# one the CLI signs in with the certificate that the environment names.
_CREATE: Final = f"""
cat > {_CREDENTIALS} <<END
{{"subscriptionId": "$AZURE_SUBSCRIPTION_ID", "tenantId": "$AZURE_TENANT_ID", "clientId": "$AZURE_CLIENT_ID"}}
END
cluster='--name hc3 --infra-id hc3-infra --azure-creds {_CREDENTIALS} --location eastus'
$0 create iam azure $cluster --resource-group-name identity-local --oidc-issuer-url {_ISSUER} --enable-kms \
  --output-file {_IAM}
$0 create infra azure $cluster --base-domain local.example.com --workload-identities-file {_IAM} \
  --assign-identity-roles --dns-zone-rg-name dns-local --output-file {_INFRASTRUCTURE}
"""
_DESTROY: Final = f"""
$0 destroy iam azure --name hc3 --infra-id hc3-infra --azure-creds {_CREDENTIALS} --dns-zone-rg-name dns-local \
  --resource-group-name identity-local --workload-identities-file {_IAM}
"""


@dataclass(frozen=True, kw_only=True)
class Story:
    """What the CLI wrote, what the stack made of it, and what the CLI made of the stack's files.

    `before` and `after` are all that Azure has, around the adoption.
    """

    identities: dict[str, Any]
    infrastructure: dict[str, Any]
    report: dict[str, Any]
    steps: dict[str, str]
    next_run: dict[str, str]
    before: set[tuple[str, str]]
    after: set[tuple[str, str]]
    exported: dict[str, dict[str, Any]]
    rendered: list[dict[str, Any]]
    left: set[tuple[str, str]]


@pytest.fixture(scope="module")
def story(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCALCLOUD_CLUSTER", ClusterKind.BUILT_IN)
        # The CLI assigns roles at once, without a principalType: where ARM does not know the principal yet, it fails.
        with running_stack(tmp_path_factory.mktemp("iam"), principal_delay=0.0) as local:
            yield _told(local, str(binaries / "hypershift"))


def _told(local: LocalStack, cli: str) -> Story:
    as_owner = ("local", "exec", "--as", "owner", "--", "bash", "-euc")
    local.idstack(*as_owner, _CREATE, cli)
    identities, infrastructure = (yaml.safe_load((local.root / file).read_text()) for file in (_IAM, _INFRASTRUCTURE))
    stack = local.beside(
        "local-iam",
        *("tags", "protect"),
        hostedClusters=[_described(infrastructure, local.configuration("hostedClusters")[0]["kms"])],
    )
    before = stack.inventory()
    options = ("--cluster", "hc3", "--output", "import.json", "--stack", stack.name)
    report = json.loads(stack.idstack("import", "iam", _IAM, *options, "--json").stdout)
    stack.idstack("import", "file", "import.json", "--stack", stack.name)
    steps = stack.up_with_steps()
    next_run, after = stack.preview(), stack.inventory()
    written = json.loads(stack.idstack("export", "hypershift", "--stack", stack.name, "--json").stdout)
    exported = written["clusters"]["hc3"]
    files = {**exported["files"], "manifest": exported["manifest"]}
    rendered = _rendered(stack, cli, exported["renderClusterAzure"])
    local.idstack(*as_owner, _DESTROY, cli)
    return Story(
        identities=identities,
        infrastructure=infrastructure,
        report=report,
        steps=steps,
        next_run=next_run,
        before=before,
        after=after,
        exported={flag: yaml.safe_load((stack.root / path).read_text()) for flag, path in files.items()},
        rendered=rendered,
        left=stack.inventory(),
    )


def _described(infrastructure: dict[str, Any], kms: dict[str, Any]) -> dict[str, Any]:
    """The cluster in the stack's configuration."""
    same = ("infraID", "vnetID", "subnetID", "securityGroupID")
    return {
        "name": "hc3",
        **{key: infrastructure[key] for key in same},
        "resourceGroup": infrastructure["resourceGroupName"],
        "topology": "Public",
        "dnsZoneResourceGroup": "dns-local",
        "dns": {key: infrastructure[key] for key in ("baseDomain", "publicZoneID", "privateZoneID")},
        "kms": kms,
    }


def _rendered(stack: LocalStack, cli: str, arguments: list[str]) -> list[dict[str, Any]]:
    """What the printed command renders, with files for what it takes from variables."""
    own = {
        "--pull-secret": json.dumps({"auths": {}}),
        "--sa-token-issuer-private-key-path": make(2048),
    }
    for flag, text in own.items():
        (stack.root / flag).write_text(text, encoding="utf-8")
    files = [word for flag in own for word in (flag, str(stack.root / flag))]
    known = (
        "--azure-creds",
        _CREDENTIALS,
        "--release-image",
        "quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64",
    )
    printed = stack.run(cli, "create", "cluster", "azure", *arguments, *files, *known)
    return [manifest for manifest in yaml.safe_load_all(printed.stdout) if manifest]


def test_nothing_that_the_cli_made_is_deleted_or_replaced(story: Story) -> None:
    assert story.before <= story.after
    assert set(story.steps.values()) <= {"create", "import", "update", "refresh"}, story.steps
    created = [name for name, step in story.steps.items() if step == "create"]
    made = [name for name in created if name.endswith("-identity") or "-federated-" in name or "-role" in name]
    assert made, "the CLI lets nobody use the key of etcd"
    assert not [name for name in made if "-kms-roles" not in name]


def test_the_run_after_the_adoption_has_nothing_to_do(story: Story) -> None:
    assert story.next_run == {}


def test_the_report_names_each_identity_that_the_cli_made(story: Story) -> None:
    adopted = {finding["identity"] for finding in story.report["findings"] if finding["nextUp"].startswith("adopts it")}

    assert adopted == {name.removesuffix("ClientID") for name in story.identities}
    assert story.report["configured"]["hostedClusters[0].issuerURL"] == _ISSUER


def test_the_exported_files_are_those_that_the_cli_wrote(story: Story) -> None:
    assert story.exported["--workload-identities-file"] == story.identities
    assert story.exported["--infra-json"] == {
        key: value for key, value in story.infrastructure.items() if _is_known(value)
    }


def _is_known(value: Any) -> bool:
    """Whether anything in a value says something: the CLI writes managed identities that there are none of, too."""
    return any(map(_is_known, value.values())) if isinstance(value, dict) else bool(value)


def test_the_cli_renders_the_stacks_hosted_cluster(story: Story) -> None:
    [clis] = [manifest for manifest in story.rendered if manifest["kind"] == "HostedCluster"]
    stacks = story.exported["manifest"]

    for field in ("release", "pullSecret", "serviceAccountSigningKey"):
        assert clis["spec"].pop(field), "what the stack does not know"
    assert clis["spec"]["secretEncryption"]["kms"]["azure"].pop("keyVaultType") == "KeyVault", "the default of the API"
    assert stacks["spec"]["platform"]["azure"].pop("cloud") == "AzurePublicCloud", "the default of the API"
    assert stacks["metadata"] == clis["metadata"]
    assert stacks["spec"] == {key: value for key, value in clis["spec"].items() if value != {}}


def test_the_cli_takes_away_what_it_made(story: Story) -> None:
    identities = {key for kind, key in story.before if "userassignedidentities" in key.lower() and "hc3" in key}

    assert identities
    assert not identities & {key for _, key in story.left}
