"""The two files of HyperShift's scripts: what is in them arrives, and what else there is is refused with a message."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from localcloud.testing.hosted_clusters import ABSENT, NETWORK, UUID, hosted_cluster
from ops.adoption import files
from ops.adoption.entry import values
from ops.adoption.files import ControlPlaneFile, ScriptIdentity, named_by_iam, named_by_scripts, read_manifest
from ops.stack.errors import CommandError
from tests.unit.ops.adoption.scripted import EXISTING

FIELDS = [row.field for row in CONTROL_PLANE]
MANAGED = [row.field for row in DATA_PLANE]
CLIENT_ID = "6f2c1e7a-0000-4000-8000-00000000aaaa"
names = st.from_regex(r"[a-zA-Z0-9-]{1,40}", fullmatch=True)
client_ids = st.uuids().map(str)
# The test writes the file again for each example.
rewritten = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def identity(client_id: str = CLIENT_ID, name: str = "cpo-p", **changes: Any) -> dict[str, Any]:
    """One entry of `cp-output.json`."""
    return {
        "certificateName": name,
        "clientID": client_id,
        "credentialsSecretName": f"{name}-json",
        "objectEncoding": "utf-8",
        **changes,
    }


def written(path: Path, text: str) -> Path:
    file = path / "output.json"
    file.write_text(text, encoding="utf-8")
    return file


WORKLOAD = {row.field: f"{row.field}ClientID" for row in CONTROL_PLANE if row.workload and row.workload.path}
OWN = [row.field for row in CONTROL_PLANE if row.workload and not row.workload.path]


@rewritten
@given(st.dictionaries(st.sampled_from([*OWN, *WORKLOAD]), client_ids, min_size=1))
def test_every_workload_identity_of_the_file_arrives(tmp_path: Path, given: dict[str, str]) -> None:
    """As `hypershift create iam azure` writes them: objects, and the client id of KMS beside them."""
    document = {
        WORKLOAD.get(field, field): id if field in WORKLOAD else {"clientID": id} for field, id in given.items()
    }

    assert files.workload_identities(written(tmp_path, json.dumps(document))) == given


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "kind: List", '{"disk": {"clientID": "x"}}', '{"kmsClientID": {}}']
)
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    file = written(tmp_path, text)

    with pytest.raises(CommandError, match="is not what HyperShift's scripts write"):
        files.workload_identities(file)
    with pytest.raises(CommandError, match=r"has no HostedCluster; write one: `kubectl get hostedcluster hc1"):
        read_manifest(file, "hc1", {}, UUID.format(1))


@rewritten
@given(st.dictionaries(st.sampled_from([*FIELDS, "velero"]), st.tuples(client_ids, names), min_size=1), names)
def test_every_identity_of_the_file_arrives(tmp_path: Path, given: dict[str, tuple[str, str]], vault: str) -> None:
    document = {field: identity(*pair) for field, pair in given.items()}
    text = json.dumps({**document, "managedIdentitiesKeyVault": {"name": vault, "tenantID": CLIENT_ID}})
    if not given.keys() & set(FIELDS):
        with pytest.raises(CommandError, match="found no control-plane identity"):
            files.control_plane(written(tmp_path, text))
        return

    found = files.control_plane(written(tmp_path, text))

    expected = {field: ScriptIdentity(id, f"{name}-json", "utf-8", name) for field, (id, name) in given.items()}
    assert {**found.identities, **found.others} == expected
    assert found.others.keys() == given.keys() - set(FIELDS)
    assert found.vault == vault


@rewritten
@given(st.dictionaries(st.sampled_from(MANAGED), st.uuids(), min_size=1))
def test_client_ids_have_no_quotes_in_the_scripts_file(tmp_path: Path, given: dict[str, uuid.UUID]) -> None:
    """`setup_dataplane_identities.sh` prints what `az --output tsv` prints, which is not JSON."""
    lines = ",\n".join(f'  "{field}": {client_id}' for field, client_id in given.items())

    found = files.data_plane(written(tmp_path, f"{{\n{lines}\n}}\n"))

    assert found == {field: str(client_id) for field, client_id in given.items()}
    # `hypershift create iam azure --output-file`.
    document = {field.removesuffix("MSIClientID"): {"clientID": str(id)} for field, id in given.items()}
    text = json.dumps({**document, "nodePoolManagement": {"clientID": CLIENT_ID}}, indent="\t")
    assert files.data_plane(written(tmp_path, text)) == found


@pytest.mark.parametrize(
    "client_id", ["12345678-1234-4123-8123-123456789012", "00000000-0000-4000-8000-00000000000e", CLIENT_ID.upper()]
)
def test_a_client_id_is_read_as_it_is_but_in_lower_case(tmp_path: Path, client_id: str) -> None:
    """A person may have written the file; Graph and ARM answer in lower case."""
    assert files.data_plane(written(tmp_path, f"{{{MANAGED[0]}: {client_id}}}")) == {MANAGED[0]: client_id.lower()}
    whole = written(tmp_path, json.dumps({FIELDS[0]: identity(client_id)}))
    assert files.control_plane(whole, "kv").identities[FIELDS[0]].client_id == client_id.lower()
    for read in (files.control_plane, files.data_plane):
        with pytest.raises(CommandError, match=r"cp\.json cannot be read \(no such file or directory\)"):
            read(tmp_path / "cp.json")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"clientID": None}, "clientID: found no client id"),
        ({"clientID": "null"}, "clientID: found no client id"),
        ({"credentialsSecretName": ""}, "credentialsSecretName: found no name of a secret"),
        ({"credentialsSecretName": "a/b"}, "credentialsSecretName: found no name of a secret"),
    ],
)
def test_an_identity_that_is_not_whole_is_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    document = {FIELDS[0]: identity(**changes), FIELDS[1]: identity(clientID="")}

    with pytest.raises(CommandError) as refused:
        files.control_plane(written(tmp_path, json.dumps(document)))

    assert f"- {FIELDS[0]}.{problem}" in str(refused.value)
    assert f"- {FIELDS[1]}.clientID" in str(refused.value), "all problems at once"


# `hosted_cluster` gives all identities of a plane the same client id.
FIELD = CONTROL_PLANE[0].field
NAMED = ControlPlaneFile(
    {FIELD: ScriptIdentity(UUID.format(3), f"{FIELD.lower()}-hc1-json", "utf-8")}, {}, "kv-idstack-local"
)
IDS = {DATA_PLANE[0].field: UUID.format(4)}
ZONE = "/subscriptions/x/resourceGroups/dns/providers/Microsoft.Network/dnsZones/example.com"
IDENTITIES = "spec__platform__azure__azureAuthenticationConfig__managedIdentities"


def found(tmp_path: Path, cluster: str = "hc1", **changes: Any) -> Any:
    file = tmp_path / "hc.yaml"
    file.write_text(yaml.safe_dump(hosted_cluster("hc1", **changes)), encoding="utf-8")
    return read_manifest(file, cluster, named_by_scripts(NAMED, IDS), UUID.format(1))


def test_everything_that_the_configuration_repeats_is_read(tmp_path: Path) -> None:
    zones = {"baseDomain": "example.com", "publicZoneID": ZONE}

    assert found(tmp_path, spec__dns=zones) == {
        ("namespace",): "default",
        ("infraID",): "hc1-infra",
        ("issuerURL",): "https://oidc.example.com/hc1",
        ("location",): "eastus",
        ("resourceGroup",): "hc1-managed",
        ("vnetID",): f"{NETWORK}/virtualNetworks/hc1-vnet",
        ("subnetID",): f"{NETWORK}/virtualNetworks/hc1-vnet/subnets/default",
        ("securityGroupID",): f"{NETWORK}/networkSecurityGroups/hc1-nsg",
        ("dns", "baseDomain"): "example.com",
        ("dns", "publicZoneID"): ZONE,
        ("dnsZoneResourceGroup",): "dns",
        ("kms", "activeKey", "keyVaultName"): "kv-etcd",
        ("kms", "activeKey", "keyName"): "hc1-etcd",
        ("kms", "activeKey", "keyVersion"): "0123456789abcdef0123456789abcdef",
    }
    without = found(tmp_path, spec__secretEncryption=ABSENT)
    assert not [place for place in without if place[0] in ("kms", "dns", "dnsZoneResourceGroup")]


@pytest.mark.parametrize(
    ("cluster", "changes", "problem"),
    [
        ("hc2", {}, "metadata.name: found hc1; accepted: hc2"),
        ("hc1", {"spec__platform__azure__subscriptionID": "x"}, "subscriptionID: found x"),
        ("hc1", {f"{IDENTITIES}__dataPlane__{DATA_PLANE[0].field}": "x"}, f"{DATA_PLANE[0].field}: found x"),
        ("hc1", {f"{IDENTITIES}__controlPlane__{FIELD}__clientID": "x"}, f"{FIELD}.clientID: found x"),
        (
            "hc1",
            {f"{IDENTITIES}__controlPlane__{FIELD}__credentialsSecretName": "x"},
            f"{FIELD}.credentialsSecretName: found x; accepted: {FIELD.lower()}-hc1-json",
        ),
    ],
)
def test_another_hosted_cluster_is_refused(tmp_path: Path, cluster: str, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(CommandError) as refused:
        found(tmp_path, cluster, **changes)

    assert "is not the HostedCluster of these files" in str(refused.value)
    assert problem in str(refused.value)


def test_workload_identities_are_where_the_api_has_them() -> None:
    rows = [row for row in CONTROL_PLANE if row.workload is not None]

    places = named_by_iam({row.field: UUID.format(1) for row in rows})

    assert set(places) == {("spec", *row.workload_path, "clientID") for row in rows}


def test_a_key_that_is_configured_as_its_url_stays(tmp_path: Path) -> None:
    known = found(tmp_path)
    url = {"activeKey": "https://kv-etcd.vault.azure.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef"}

    written = values({"hostedClusters": [{"name": "hc1", "kms": url}]}, "hc1", known, EXISTING)

    assert not [place for place in written if "kms" in place]
    assert written["hostedClusters[0].vnetID"] == f"{NETWORK}/virtualNetworks/hc1-vnet"
