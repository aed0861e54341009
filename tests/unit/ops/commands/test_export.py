"""`idstack export hypershift`: the files and flags that HyperShift's CLI takes."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ops.conftest import FakeEngine, Idstack, Printed
from tests.unit.specification import GROUPS, specification

GOLDEN = Path(__file__).parent / "golden/hypershift"
FIELDS = (
    ("cloudProvider", "cloud-provider"),
    ("nodePoolManagement", "nodepool-mgmt"),
    ("controlPlaneOperator", "cpo"),
    ("imageRegistry", "ciro"),
    ("ingress", "ingress"),
    ("network", "cncc"),
    ("disk", "azure-disk"),
    ("file", "azure-file"),
)


def client_id(number: int) -> str:
    return f"aaaaaaaa-0000-4000-8000-{number:012}"


def managed_identity(number: int, secret: str) -> dict[str, str]:
    return {"clientID": client_id(number), "credentialsSecretName": secret, "objectEncoding": "utf-8"}


def described(name: str = "hc1", cloud: str = "AzurePublicCloud") -> Any:
    """One hosted cluster of the stack's outputs."""
    identities = {field: managed_identity(at, f"{stem}-{name}-json") for at, (field, stem) in enumerate(FIELDS, 1)}
    return {
        "namespace": "clusters",
        "controlPlane": {},
        "hostedClusterSpec": specification(
            name=name,
            cloud=cloud,
            control_plane=identities,
            data_plane={
                "imageRegistryMSIClientID": client_id(11),
                "diskMSIClientID": client_id(12),
                "fileMSIClientID": client_id(13),
            },
            kms=managed_identity(9, f"kms-{name}-json"),
        ),
        "hostedClusterBase": {
            "metadata": {"annotations": {"hypershift.openshift.io/pod-security-admission-label-override": "baseline"}},
            "spec": {"dns": DNS, "services": [{"service": "APIServer"}]},
        },
        "externalDnsDomain": "control-planes.example.com",
        "dnsZoneResourceGroup": "dns-dev",
    }


DNS = {
    "baseDomain": "apps.example.com",
    "publicZoneID": f"{GROUPS}/dns-dev/providers/Microsoft.Network/dnszones/apps.example.com",
    "privateZoneID": f"{GROUPS}/hc1-managed/providers/Microsoft.Network/privateDnsZones/hc1.apps.example.com",
}
OUTPUTS: Any = {
    "clusterSide": "hypershift",
    "keyVaultUserClientId": client_id(10),
    "hostedClusters": {"hc1": described()},
}

Export = Callable[..., Printed]


@pytest.fixture
def export(engine: FakeEngine, idstack: Idstack) -> Export:
    """Exports these hosted clusters of the stack `dev`, `hc1` unless given; `changes` are those of its outputs."""

    def export(*arguments: str, clusters: Any = None, **changes: Any) -> Printed:
        engine.has({**OUTPUTS, **changes, **({} if clusters is None else {"hostedClusters": clusters})})
        return idstack("export", "hypershift", "--stack", "dev", *arguments)

    return export


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files go below the working directory."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_files_and_commands_have_the_shape_and_the_flags_of_the_cli(export: Export) -> None:
    printed = export()

    assert (printed.code, printed.output) == (0, (GOLDEN / "commands.txt").read_text())
    for file in ("managed-identities.json", "data-plane-identities.json", "infra.json", "hosted-cluster.yaml"):
        assert Path("hypershift/hc1", file).read_text() == (GOLDEN / file).read_text()


def test_scripts_get_the_same_as_json(export: Export) -> None:
    document = json.loads(export("--json").output)

    commands = [line.replace("\\\n", " ") for line in (GOLDEN / "commands.txt").read_text().split("\n\n")[1:]]
    definitions, install, create, render = (shlex.split(command) for command in commands)
    cluster = document["clusters"]["hc1"]
    assert document["definitions"] == [word for word in definitions if word.startswith("https://")]
    for line, key in ((install[2:], "install"), (create[4:], "createClusterAzure"), (render[4:], "renderClusterAzure")):
        own = cluster[key]
        assert line[: len(own)] == own
        assert all(word.startswith(("--", "$")) for word in line[len(own) :]), "the rest are variables"
    names = ("managed-identities", "data-plane-identities", "infra")
    flags = ("--managed-identities-file", "--data-plane-identities-file", "--infra-json")
    assert cluster["files"] == {flag: f"hypershift/hc1/{name}.json" for flag, name in zip(flags, names, strict=True)}
    assert cluster["manifest"] == "hypershift/hc1/hosted-cluster.yaml"


_DOMAIN = '--external-dns-domain "$MGMT_DNS_ZONE_NAME"'


@pytest.mark.parametrize(
    ("without", "left_out", "flags"),
    [
        (("externalDnsDomain", "services"), {"hosted-cluster.yaml": "externalDnsDomain"}, [_DOMAIN]),
        (("externalDnsDomain",), {}, ["--external-dns-domain-filter"]),
        (
            ("dns",),
            dict.fromkeys(("infra.json", "hosted-cluster.yaml"), "dns.baseDomain, dns.publicZoneID, dns.privateZoneID"),
            ['--base-domain "$PARENT_DNS_ZONE"'],
        ),
        (("dnsZoneResourceGroup",), {}, []),
    ],
)
def test_what_the_stack_does_not_know_is_a_variable(
    export: Export, without: tuple[str, ...], left_out: dict[str, str], flags: list[str]
) -> None:
    cluster = {key: value for key, value in described().items() if key not in without}
    for key in {"services", "dns"}.intersection(without):
        del cluster["hostedClusterBase"]["spec"][key]

    lines = export(clusters={"hc1": cluster}).output.splitlines()

    told = [f"hypershift/hc1/{file} is left out: it needs {need}" for file, need in left_out.items()]
    assert [line for line in lines if "is left out" in line] == told
    assert [flag for flag in flags if not any(flag in line for line in lines)] == []
    assert any(_DOMAIN in line for line in lines) == (_DOMAIN in flags), "a cluster without host names has no domain"
    written = {Path(line) for line in lines[: lines.index("")] if "is left out" not in line}
    assert set(Path("hypershift/hc1").iterdir()) == written


@pytest.mark.parametrize(
    ("zone", "domain_filter"), [({}, '"$MGMT_DNS_ZONE_NAME"'), ({"externalDnsZone": "example.com"}, "example.com")]
)
def test_clusters_of_one_domain_or_zone_give_the_filter_of_external_dns(
    export: Export, zone: dict[str, str], domain_filter: str
) -> None:
    clusters = {"hc1": described(), "hc2": {**described("hc2"), "externalDnsDomain": "elsewhere.example.com"}}

    printed = export(clusters={name: cluster | zone for name, cluster in clusters.items()}).output

    assert f"--external-dns-domain-filter {domain_filter}" in printed.split("\n\n")[2]


def self_managed(name: str) -> Any:
    cluster = described(name)
    identities = {field: {"clientID": client_id(at)} for at, (field, _) in enumerate(FIELDS, 1)}
    kms = cluster["hostedClusterSpec"]["secretEncryption"]["kms"]["azure"]
    kms["workloadIdentity"] = {"clientID": kms.pop("kms")["clientID"]}
    cluster["hostedClusterSpec"]["platform"]["azure"] |= {
        "topology": "Public",
        "azureAuthenticationConfig": {
            "azureAuthenticationConfigType": "WorkloadIdentities",
            "workloadIdentities": identities,
        },
    }
    return cluster


@pytest.mark.parametrize(("key", "is_link"), [("privateLink", True), ("swift", False)])
@pytest.mark.parametrize(
    ("build", "told"),
    [
        (described, ["hc1: HyperShift creates no Private Link Service with --managed-service ARO-HCP"]),
        (
            self_managed,
            [
                "--private-platform Azure",
                '--azure-private-creds "$AZURE_PRIVATE_CREDS"',
                '--azure-pls-resource-group "$MGMT_INFRA_RG"',
                "an OpenShift management cluster on Azure, not for AKS",
            ],
        ),
    ],
)
def test_a_private_link_is_installed_with_its_operator_where_hypershift_makes_one(
    export: Export, build: Callable[[str], Any], told: list[str], key: str, is_link: bool
) -> None:
    cluster = build("hc1")
    cluster["hostedClusterSpec"]["platform"]["azure"] |= {"topology": "Private", "private": {"type": "x", key: {}}}

    printed = export(clusters={"hc1": cluster}).output

    assert [word in printed for word in told] == [is_link] * len(told)


def test_each_way_has_a_hypershift_of_its_own(export: Export) -> None:
    printed = export(clusters={"hc1": described(), "hc2": self_managed("hc2")}).output

    _, _, first, second, *_ = printed.split("\n\n")

    assert "--managed-service ARO-HCP" in first
    assert second.startswith("hypershift install")
    assert "ARO-HCP" not in second
    assert "key-vault" not in second


@pytest.mark.parametrize(
    ("clusters", "arguments", "reason"),
    [
        (
            {},
            (),
            "the stack dev has no hosted cluster to export: first, `.venv/bin/idstack up --stack dev`",
        ),
        (None, ("--cluster", "hc9"), "the stack dev has no hosted cluster hc9; it has hc1"),
        (None, ("--directory", "/dev/null"), "the files cannot be written: "),
    ],
)
def test_what_cannot_be_exported_is_reported(
    export: Export, clusters: dict[str, Any] | None, arguments: tuple[str, ...], reason: str
) -> None:
    printed = export(*arguments, clusters=clusters)

    assert (printed.code, printed.output) == (1, "")
    assert printed.error.startswith(f"idstack: {reason}")


def test_a_cluster_that_the_cli_would_write_otherwise_is_refused(export: Export, folder: Path) -> None:
    other = copy.deepcopy(described("hc2", "AzureChinaCloud"))
    identities = other["hostedClusterSpec"]["platform"]["azure"]["azureAuthenticationConfig"]["managedIdentities"]
    del identities["controlPlane"]["imageRegistry"]
    identities["controlPlane"]["disk"]["objectEncoding"] = "hex"
    clusters = {"hc1": described(), "hc2": other}

    printed = export("--json", clusters=clusters)

    assert (printed.code, printed.output, list(folder.iterdir())) == (1, "", [])
    assert printed.error.splitlines()[1:4] == [
        "  hc2: it writes the encoding utf-8 for every secret, but these are stored as hex",
        "  hc2: it writes imageRegistry with an empty secret name, which the API refuses",
        "  hc2: it leaves out the cloud, which means AzurePublicCloud, but this cluster is in AzureChinaCloud",
    ]
    assert export("--cluster", "hc1", clusters=clusters).code == 0


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--cluster", "hc1")])
def test_a_stack_that_owns_the_control_planes_namespace_exports_nothing(
    export: Export, folder: Path, arguments: tuple[str, ...]
) -> None:
    owned = {**described(), "controlPlane": {"disk": {}}}

    printed = export(*arguments, clusters={"hc1": owned}, clusterSide="stack")

    assert (printed.code, printed.output, list(folder.iterdir())) == (1, "", [])
    assert printed.error == (
        "idstack: the stack dev was brought up with `clusterSide: stack`, so it owns clusters-hc1, where HyperShift "
        "creates the control plane: the two would overwrite each other's objects. Nothing was written. Leave the "
        "namespace to HyperShift first: `.venv/bin/idstack pulumi --stack dev -- config set clusterSide hypershift`, "
        "`.venv/bin/idstack up --stack dev`, then export again\n"
    )


def test_a_self_managed_cluster_beside_the_stacks_own_is_exported_without_a_vault(
    export: Export, engine: FakeEngine, idstack: Idstack, folder: Path
) -> None:
    clusters = {"hc1": {**described(), "controlPlane": {"disk": {}}}, "hc2": self_managed("hc2")}
    both = export(clusters=clusters, clusterSide="stack")
    assert (both.code, both.error.endswith("then export again; --cluster exports hc2\n")) == (1, True)
    engine.has({"clusterSide": "stack", "hostedClusters": clusters})

    one = json.loads(idstack("export", "hypershift", "--stack", "dev", "--cluster", "hc2", "--json").output)

    assert {name: set(found["files"]) for name, found in one["clusters"].items()} == {
        "hc2": {"--workload-identities-file", "--infra-json"}
    }
    assert [path.name for path in (folder / "hypershift").iterdir()] == ["hc2"]
