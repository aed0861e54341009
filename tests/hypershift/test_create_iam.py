"""What HyperShift's CLI makes for a self-managed cluster, adopted by a stack and given back to the CLI."""

from __future__ import annotations

import json
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


def test_what_the_cli_made_is_adopted_and_given_back_to_it(
    binaries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALCLOUD_CLUSTER", ClusterKind.BUILT_IN)
    cli, as_owner = str(binaries / "hypershift"), ("local", "exec", "--as", "owner", "--", "bash", "-euc")
    # The CLI assigns roles at once, without a principalType: where ARM does not know the principal yet, it fails.
    with running_stack(tmp_path, principal_delay=0.0) as local:
        local.idstack(*as_owner, _CREATE, cli)
        identities, infrastructure = (yaml.safe_load((tmp_path / file).read_text()) for file in (_IAM, _INFRASTRUCTURE))
        described = _described(infrastructure, local.configuration("hostedClusters")[0]["kms"])
        stack = local.beside("local-iam", *("tags", "protect"), hostedClusters=[described])
        before = stack.inventory()
        options = ("--cluster", "hc3", "--output", "import.json", "--stack", stack.name)
        report = json.loads(stack.idstack("import", "iam", _IAM, *options, "--json").stdout)
        adopted = {finding["identity"] for finding in report["findings"] if finding["nextUp"].startswith("adopts it")}
        assert adopted == {name.removesuffix("ClientID") for name in identities}
        assert report["configured"]["hostedClusters[0].issuerURL"] == _ISSUER
        stack.idstack("import", "file", "import.json", "--stack", stack.name)

        _require_adoption(stack.up_with_steps())
        assert stack.preview() == {}
        assert before <= stack.inventory(), "nothing that the CLI made is deleted"

        written = json.loads(stack.idstack("export", "hypershift", "--stack", stack.name, "--json").stdout)
        exported = written["clusters"]["hc3"]
        files = {flag: yaml.safe_load((tmp_path / path).read_text()) for flag, path in exported["files"].items()}
        assert files["--workload-identities-file"] == identities
        assert files["--infra-json"] == {key: value for key, value in infrastructure.items() if _is_known(value)}
        manifest = yaml.safe_load((tmp_path / exported["manifest"]).read_text())
        _require_the_same(manifest, _rendered(stack, cli, exported["renderClusterAzure"]))

        local.idstack(*as_owner, _DESTROY, cli)
        own = {key for kind, key in before if "userassignedidentities" in key.lower() and "hc3" in key}
        assert own
        assert not own & {key for _, key in stack.inventory()}


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


def _require_adoption(steps: dict[str, str]) -> None:
    """Nothing that the CLI made is replaced or made again."""
    assert set(steps.values()) <= {"create", "import", "update", "refresh"}, steps
    created = [name for name, step in steps.items() if step == "create"]
    made = [name for name in created if name.endswith("-identity") or "-federated-" in name or "-role" in name]
    assert made, "the CLI lets nobody use the key of etcd"
    assert not [name for name in made if "-kms-roles" not in name]


def _is_known(value: Any) -> bool:
    """Whether anything in a value says something: the CLI writes managed identities that there are none of, too."""
    return any(map(_is_known, value.values())) if isinstance(value, dict) else bool(value)


def _require_the_same(stacks: dict[str, Any], rendered: list[dict[str, Any]]) -> None:
    """The CLI renders the stack's HostedCluster."""
    [clis] = [manifest for manifest in rendered if manifest["kind"] == "HostedCluster"]
    for field in ("release", "pullSecret", "serviceAccountSigningKey"):
        assert clis["spec"].pop(field), "what the stack does not know"
    assert clis["spec"]["secretEncryption"]["kms"]["azure"].pop("keyVaultType") == "KeyVault", "the default of the API"
    assert stacks["spec"]["platform"]["azure"].pop("cloud") == "AzurePublicCloud", "the default of the API"
    assert stacks["metadata"] == clis["metadata"]
    assert stacks["spec"] == {key: value for key, value in clis["spec"].items() if value != {}}
