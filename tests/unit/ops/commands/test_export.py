"""`idstack export hypershift`: the files and flags that HyperShift's CLI takes."""

from __future__ import annotations

import copy
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.outputs.hypershift import hosted_clusters
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.specification import specification

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
    }


OUTPUTS: Any = {"keyVaultUserClientId": client_id(10), "hostedClusters": {"hc1": described()}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files go below the working directory."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("file", ["managed-identities.json", "data-plane-identities.json", "workload-identities.json"])
def test_a_file_has_the_shape_that_the_cli_reads(engine: FakeEngine, idstack: Idstack, file: str) -> None:
    engine.has(OUTPUTS)

    assert idstack("export", "hypershift", "--stack", "dev").code == 0

    assert Path("hypershift/hc1", file).read_text() == (GOLDEN / file).read_text()


def test_the_files_have_the_stacks_values(engine: FakeEngine, idstack: Idstack) -> None:
    """The CLI reads two of them as YAML, and the third as JSON."""
    engine.has(OUTPUTS)
    idstack("export", "hypershift", "--stack", "dev", "--directory", "out")

    identities = OUTPUTS["hostedClusters"]["hc1"]["hostedClusterSpec"]["platform"]["azure"][
        "azureAuthenticationConfig"
    ]["managedIdentities"]
    for file, expected in (("managed", identities["controlPlane"]), ("data-plane", identities["dataPlane"])):
        text = Path(f"out/hc1/{file}-identities.json").read_text()
        assert yaml.safe_load(text) == json.loads(text) == expected
    workload = json.loads(Path("out/hc1/workload-identities.json").read_text())
    assert workload.pop("kmsClientID") == client_id(9)
    assert workload == {field: {"clientID": client_id(at)} for at, (field, _) in enumerate(FIELDS, 1)}


def test_the_commands_have_their_flags(engine: FakeEngine, idstack: Idstack) -> None:
    engine.has(OUTPUTS)

    printed = idstack("export", "hypershift", "--stack", "dev")

    assert printed.output == (GOLDEN / "commands.txt").read_text()


def test_scripts_get_the_same_as_json(engine: FakeEngine, idstack: Idstack) -> None:
    engine.has(OUTPUTS)

    document = json.loads(idstack("export", "hypershift", "--stack", "dev", "--json").output)

    commands = [line.replace("\\\n", " ") for line in (GOLDEN / "commands.txt").read_text().split("\n\n")[1:]]
    shown = [shlex.split(command) for command in commands]
    assert document["stack"] == "dev"
    assert ["hypershift", "install", *document["install"]] == shown[0][: 2 + len(document["install"])]
    create = document["clusters"]["hc1"]["createClusterAzure"]
    assert ["hypershift", "create", "cluster", "azure", *create] == shown[1][: 4 + len(create)]
    assert document["clusters"]["hc1"]["files"] == {
        "--managed-identities-file": "hypershift/hc1/managed-identities.json",
        "--data-plane-identities-file": "hypershift/hc1/data-plane-identities.json",
        "--workload-identities-file": "hypershift/hc1/workload-identities.json",
    }


def test_one_cluster_or_all_of_them(engine: FakeEngine, idstack: Idstack, folder: Path) -> None:
    engine.has({**OUTPUTS, "hostedClusters": {"hc1": described(), "hc2": described("hc2")}})

    idstack("export", "hypershift", "--stack", "dev", "--cluster", "hc2")
    one = sorted(each.name for each in (folder / "hypershift").iterdir())
    idstack("export", "hypershift", "--stack", "dev")

    assert one == ["hc2"]
    assert sorted(each.name for each in (folder / "hypershift").iterdir()) == ["hc1", "hc2"]


@pytest.mark.parametrize(
    ("outputs", "arguments", "reason"),
    [
        ({"hostedClusters": {}}, (), "the stack dev has no hosted cluster: there is nothing to export before"),
        (OUTPUTS, ("--cluster", "hc9"), "the stack dev has no hosted cluster hc9; it has hc1"),
        (OUTPUTS, ("--directory", "/dev/null"), "the files cannot be written: "),
    ],
)
def test_what_cannot_be_exported_is_reported(
    engine: FakeEngine, idstack: Idstack, outputs: dict[str, Any], arguments: tuple[str, ...], reason: str
) -> None:
    engine.has(outputs)

    printed = idstack("export", "hypershift", "--stack", "dev", *arguments)

    assert (printed.code, printed.output) == (1, "")
    assert printed.error.startswith(f"idstack: {reason}")


def test_a_cluster_that_the_cli_would_write_otherwise_is_refused(
    engine: FakeEngine, idstack: Idstack, folder: Path
) -> None:
    other = copy.deepcopy(described("hc2", "AzureChinaCloud"))
    identities = other["hostedClusterSpec"]["platform"]["azure"]["azureAuthenticationConfig"]["managedIdentities"]
    del identities["controlPlane"]["imageRegistry"]
    identities["controlPlane"]["disk"]["objectEncoding"] = "hex"
    engine.has({**OUTPUTS, "hostedClusters": {"hc1": described(), "hc2": other}})

    printed = idstack("export", "hypershift", "--stack", "dev", "--json")

    assert (printed.code, printed.output, list(folder.iterdir())) == (1, "", [])
    assert printed.error.splitlines()[1:4] == [
        "  hc2: it writes the encoding utf-8 for every secret, but these are stored as hex",
        "  hc2: it writes imageRegistry with an empty secret name, which the API refuses",
        "  hc2: it leaves the cloud out, which means AzurePublicCloud, but this one is in AzureChinaCloud",
    ]
    assert idstack("export", "hypershift", "--stack", "dev", "--cluster", "hc1").code == 0


def test_the_key_is_named_by_its_clouds_suffix() -> None:
    cluster = hosted_clusters({"hostedClusters": {"hc1": described(cloud="AzureUSGovernmentCloud")}}, Path())["hc1"]

    assert cluster.create[-2:] == [
        "--encryption-key-id",
        "https://kv-etcd-dev.vault.usgovcloudapi.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef",
    ]
