"""The HostedCluster that the stack writes, and the one that HyperShift's CLI makes of the stack's files."""

from __future__ import annotations

import copy
import json
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from components.hypershift.hosted_cluster_object import (
    base_manifest,
    conflicts,
    hosted_cluster_spec,
    merged,
    stack_part,
)
from identity.catalogue import CONTROL_PLANE
from identity.settings import Settings, load_settings
from ops.outputs.hypershift import HostedClusterExport
from tests.rooted import is_dynamic
from tests.unit.components.world import configuration, hosted_cluster
from tests.unit.identity.settings.world import as_pulumi_passes_it
from tests.unit.specification import GROUPS

HERE: Final = Path(__file__).parent
RELEASE: Final = "quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64"
NAT: Final = f"{GROUPS}/hc1-network/providers/Microsoft.Network/virtualNetworks/hc1-vnet/subnets/nat"
DNS: Final = {
    "baseDomain": "apps.example.com",
    "publicZoneID": f"{GROUPS}/dns-dev/providers/Microsoft.Network/dnszones/apps.example.com",
    "privateZoneID": f"{GROUPS}/hc1-managed/providers/Microsoft.Network/privateDnsZones/hc1.apps.example.com",
}


def stack_settings(*, external_domain: str | None = "control-planes.example.com", **changes: Any) -> Settings:
    cluster = hosted_cluster(
        dns=DNS,
        hostedCluster={"releaseImage": RELEASE, "pullSecret": "hc1-pull-secret", "serviceAccountSigningKey": "hc1-key"},
        **({} if external_domain is None else {"externalDnsDomain": external_domain}),
        **changes,
    )
    whole = configuration(clusterSide="hypershift", hostedClusters=[cluster])
    return load_settings(as_pulumi_passes_it(whole), secret_keys=(), local=None)


def client_ids(rows: Any) -> dict[str, str]:
    return {row.field: f"{at:08}-aaaa-4aaa-8aaa-aaaaaaaaaaaa" for at, row in enumerate(rows, 1)}


def identity_spec(settings: Settings) -> Any:
    cluster = settings.hosted_clusters[0]
    return hosted_cluster_spec(
        settings,
        cluster,
        vault_name="kv-idstack-dev",
        control_plane=client_ids(CONTROL_PLANE),
        data_plane=client_ids(cluster.federated_rows),
    )


def written_by_the_stack(settings: Settings | None = None) -> dict[str, Any]:
    settings = settings or stack_settings()
    cluster = settings.hosted_clusters[0]
    return merged(base_manifest(cluster), stack_part(cluster, identity_spec(settings)))


def self_managed(**changes: Any) -> Settings:
    return stack_settings(authentication="workload-identities", **{"topology": "Public", **changes})


def exported(settings: Settings | None = None) -> HostedClusterExport:
    settings = settings or stack_settings()
    cluster = settings.hosted_clusters[0]
    described: Any = {
        "namespace": cluster.namespace,
        "hostedClusterSpec": identity_spec(settings),
        "hostedClusterBase": base_manifest(cluster),
        "externalDnsDomain": cluster.external_dns_domain,
    }
    return HostedClusterExport("hc1", described, Path("out"))


def rendered(folder: Path = HERE) -> dict[str, Any]:
    """The CLI's HostedCluster without what is empty."""
    document = yaml.safe_load((folder / "hosted-cluster.yaml").read_text(encoding="utf-8"))
    del document["status"]
    document["spec"] = {key: value for key, value in document["spec"].items() if value != {}}
    return dict(document)


def require_same(stacks: dict[str, Any], clis: dict[str, Any]) -> None:
    """But for defaults of the API, which only one of them writes, and for the name of a Secret of the CLI's own."""
    assert clis["spec"]["secretEncryption"]["kms"]["azure"].pop("keyVaultType") == "KeyVault"
    assert stacks["spec"]["platform"]["azure"].pop("cloud") == "AzurePublicCloud"
    assert clis["spec"].pop("serviceAccountSigningKey") == {"name": "hc1sa-token-issuer-key"}
    assert stacks["spec"].pop("serviceAccountSigningKey") == {"name": "hc1-key"}
    assert stacks == clis


def test_the_stack_writes_what_the_cli_renders() -> None:
    stacks, clis = written_by_the_stack(), rendered()

    kms = stacks["spec"]["secretEncryption"]["kms"]["azure"]
    assert kms["kms"].pop("clientID"), "the CLI leaves it out, the API describes it as required"
    require_same(stacks, clis)


LINK: Final = {"topology": "PublicAndPrivate", "private": {"type": "PrivateLink", "privateLink": {"natSubnetID": NAT}}}
WORKLOAD: Final = HERE / "workload-identities"


def test_the_stack_writes_what_the_cli_renders_of_workload_identities() -> None:
    require_same(written_by_the_stack(self_managed(**LINK)), rendered(WORKLOAD))


def test_the_files_of_workload_identities_are_what_the_cli_takes() -> None:
    """`workload-identities.json` as `hypershift create iam azure` writes it, with `kmsClientID` beside the fields."""
    files = exported(self_managed(**LINK)).files
    _, infrastructure = files.pop("--infra-json")
    ((flag, (path, identities)),) = files.items()

    assert infrastructure == json.loads((WORKLOAD / "infra.json").read_text(encoding="utf-8"))
    assert (flag, path.name) == ("--workload-identities-file", "workload-identities.json")
    assert identities == {**infrastructure["workloadIdentities"], "kmsClientID": infrastructure["kmsClientID"]}


def test_a_self_managed_cluster_has_flags_of_its_own() -> None:
    arguments = exported(self_managed()).create.arguments

    assert "--workload-identities-file" in arguments
    assert not {"--managed-identities-file", "--data-plane-identities-file", "--kms-credentials-secret-name"} & {
        *arguments
    }
    [remark] = exported(self_managed(**LINK)).remarks()
    assert "HyperShift describes Private Link for an OpenShift management cluster" in remark


def test_a_public_self_managed_cluster_needs_no_external_domain() -> None:
    """As the CLI renders it without `--external-dns-domain`."""
    services = base_manifest(self_managed(external_domain=None).hosted_clusters[0])["spec"]["services"]

    assert {service["service"]: service["servicePublishingStrategy"] for service in services} == {
        "APIServer": {"type": "LoadBalancer"},
        "Ignition": {"type": "Route"},
        "Konnectivity": {"type": "Route"},
        "OAuthServer": {"type": "Route"},
    }


def test_the_exported_infrastructure_is_what_the_cli_rendered_from() -> None:
    path, content = exported().files["--infra-json"]

    assert path == Path("out/hc1/infra.json")
    assert content == json.loads((HERE / "infra.json").read_text(encoding="utf-8"))


def test_the_exported_manifest_is_the_one_that_the_stack_applies() -> None:
    manifest = exported().manifest

    assert manifest is not None
    assert yaml.safe_load(manifest[1]) == written_by_the_stack()
    assert not manifest[1].startswith("#"), "nothing is to be added"


@pytest.mark.parametrize("field", ["dns", "serviceAccountSigningKey", "release", "pullSecret"])
def test_what_the_configuration_says_no_manifest_changes(field: str) -> None:
    settings = stack_settings()
    cluster = settings.hosted_clusters[0]
    part = stack_part(cluster, identity_spec(settings))
    other: Any = copy.deepcopy(part)
    key = next(iter(other["spec"][field]))
    other["spec"][field][key] = "other"

    assert [conflict.path for conflict in conflicts(other, part)] == [("spec", field, key)]


def test_nodes_of_a_private_cluster_need_no_public_names() -> None:
    """As the CLI renders it with `--endpoint-access Private`."""
    private: Any = {"topology": "Private", "private": {"type": "Swift", "swift": {"podNetworkInstance": "pni"}}}

    services = base_manifest(stack_settings(**private).hosted_clusters[0])["spec"]["services"]

    assert {service["service"]: service["servicePublishingStrategy"].get("route") for service in services} == {
        "APIServer": {"hostname": "api-hc1.control-planes.example.com"},
        "Ignition": None,
        "Konnectivity": None,
        "OAuthServer": {"hostname": "oauth-hc1.control-planes.example.com"},
    }


def test_a_private_link_without_an_external_domain_has_routes_without_names() -> None:
    """As the CLI renders it without `--external-dns-domain` (cmd/cluster/core/create.go:1092-1116)."""
    private: Any = {"topology": "Private", "private": {"type": "PrivateLink", "privateLink": {"natSubnetID": NAT}}}

    services = base_manifest(stack_settings(external_domain=None, **private).hosted_clusters[0])["spec"]["services"]

    assert services == [
        {"service": service, "servicePublishingStrategy": {"type": "Route"}}
        for service in ("APIServer", "Ignition", "Konnectivity", "OAuthServer")
    ]


def test_a_cluster_without_the_image_registry_disables_its_capability() -> None:
    off: Mapping[str, Any] = {"identities": {"imageRegistry": {"enabled": False}}}

    assert base_manifest(stack_settings(**off).hosted_clusters[0])["spec"]["capabilities"] == {
        "disabled": ["ImageRegistry"]
    }


def test_a_program_that_needs_libc_is_told_from_one_that_does_not(tmp_path: Path) -> None:
    static = tmp_path / "static"
    static.write_bytes(struct.pack("<32xQ14xHH", 64, 56, 1).ljust(64, b"\0") + struct.pack("<I52x", 1))

    assert (is_dynamic(Path(sys.executable)), is_dynamic(static)) == (True, False)
