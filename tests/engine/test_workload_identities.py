"""A stack with one cluster of each way: tokens of the self-managed one are exchanged, and open what their row's do."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.credentials import rfc3339
from identity.credentials.service_account_key import make, public_half
from identity.probe_pod import proof_argument, proof_target
from identity.resource_types import MANAGED_IDENTITY_API
from identity.settings import HostedClusterSettings, Settings, load_settings
from tests.engine.create_iam import create_iam
from tests.engine.hypershift_scripts import HyperShiftScripts
from tests.engine.key_material import vault_keys
from tests.engine.killing import small_stack
from tests.engine.out_of_band import OutOfBand
from tests.engine.service_accounts import GuestCluster
from tests.harness import LocalStack

pytestmark = pytest.mark.slow

ISSUER: Final = "https://hc2created.blob.core.windows.net/hc2created"
ROWS: Final = [(row, each.subject) for row in CONTROL_PLANE if row.workload for each in row.workload.subjects]
_STORAGE_API: Final = "2024-01-01"
_ONLY_MANAGED: Final = ("identities", "issuerURL", "dns", "externalDnsDomain")


def self_managed(managed: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """`hc2` in the groups of `hc1`."""
    return {
        **{name: value for name, value in managed.items() if name not in _ONLY_MANAGED},
        "name": "hc2",
        "infraID": "hc2-infra",
        "authentication": "workload-identities",
        "topology": "Private",
        "private": {"type": "PrivateLink", "privateLink": {"natSubnetID": managed["subnetID"]}},
        "issuer": "create",
        "issuerName": "hc2created",
        **changes,
    }


@dataclass
class BothWays:
    """A stack with `hc1` of the first way and `hc2` of the second."""

    stack: LocalStack
    managed: dict[str, Any]
    first: dict[str, str]
    again: dict[str, str]

    @property
    def settings(self) -> Settings:
        """Of the stack."""
        written = yaml.safe_load((self.stack.root / f"Pulumi.{self.stack.name}.yaml").read_text(encoding="utf-8"))
        texts = {
            key.removeprefix("idstack:"): value if isinstance(value, str) else json.dumps(value)
            for key, value in written["config"].items()
            if key.startswith("idstack:")
        }
        return load_settings(texts, secret_keys=(), local=self.stack.environment)

    @property
    def cluster(self) -> HostedClusterSettings:
        """`hc2`."""
        return self.settings.hosted_clusters[1]

    @property
    def guest(self) -> GuestCluster:
        """The service accounts of `hc2`, with its own signing key."""
        [key] = [key for name, key in vault_keys(self.stack).items() if "hc2-sa-signing-key-1" in name]
        assert isinstance(key, rsa.RSAPrivateKey)
        form = serialization.PrivateFormat.TraditionalOpenSSL
        pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        return GuestCluster(self.stack, ISSUER, pem.decode())

    def client_id(self, row: ControlPlaneIdentity) -> str:
        """The managed identity of a row."""
        return str(self.stack.outputs["hostedClusters"]["hc2"]["dataPlane"][row.field])

    def call(self, row: ControlPlaneIdentity, subject: str) -> httpx.Response:
        """The row's proof call with a token of this subject."""
        target = proof_target(self.settings, self.cluster)
        proof = json.loads(proof_argument(row.proof, self.settings.cloud, target))
        guest = self.guest
        answer = guest.exchange(self.client_id(row), guest.token(subject), proof["scope"])
        assert answer.error == 0
        trust = ssl.create_default_context(cafile=self.stack.environment.ca_file)
        headers = {"Authorization": f"Bearer {answer.token}", **proof.get("headers", {})}
        with httpx.Client(verify=trust, timeout=30, trust_env=False) as http:
            return http.request(proof["method"], proof["url"], headers=headers, json=proof.get("body"))


@dataclass
class Adopted:
    """A stack after the adoption, and what there was before; `named` is the content of the file."""

    stack: LocalStack
    named: dict[str, Any]
    report: dict[str, Any]
    steps: dict[str, str]
    before: set[tuple[str, str]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWays]:
    with small_stack(tmp_path_factory.mktemp("both"), "hypershift") as stack:
        [managed] = stack.configuration("hostedClusters")
        stack.configure(hostedClusters=[managed, self_managed(managed)])
        first = stack.up_with_steps()
        yield BothWays(stack, managed, first, stack.preview())


def test_a_stack_has_clusters_of_both_ways(both: BothWays) -> None:
    spec = both.stack.outputs["hostedClusters"]["hc2"]["hostedClusterSpec"]["platform"]["azure"]

    assert both.again == {}
    assert set(spec["azureAuthenticationConfig"]) == {"azureAuthenticationConfigType", "workloadIdentities"}
    assert both.stack.outputs["hostedClusters"]["hc2"]["controlPlane"] == {}


@pytest.mark.parametrize(("row", "subject"), ROWS, ids=[subject for _, subject in ROWS])
def test_a_token_of_each_subject_opens_what_its_row_proves(
    both: BothWays, row: ControlPlaneIdentity, subject: str
) -> None:
    answer = both.call(row, subject)

    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("claims", "error"),
    [
        ({"iss": "https://elsewhere.blob.core.windows.net/elsewhere"}, 700211),
        ({"sub": "system:serviceaccount:default:default"}, 700213),
        ({"aud": ["sts.amazonaws.com"]}, 700212),
        ({"exp": 1}, 700024),
    ],
    ids=["issuer", "subject", "audience", "time"],
)
def test_a_token_with_a_wrong_claim_is_refused(both: BothWays, claims: dict[str, Any], error: int) -> None:
    row, subject = ROWS[0]
    guest = both.guest

    assert guest.exchange(both.client_id(row), guest.token(subject, **claims)).error == error


def test_what_is_no_token_is_refused(both: BothWays) -> None:
    assert both.guest.exchange(both.client_id(ROWS[0][0]), "no.token").error == 50027


def test_a_service_account_is_one_identitys_alone(both: BothWays) -> None:
    (_, subject), (other, _) = ROWS[0], ROWS[-1]

    assert both.guest.exchange(both.client_id(other), both.guest.token(subject)).error == 700213


def test_status_has_each_identity_and_each_of_its_credentials(both: BothWays) -> None:
    printed = both.stack.idstack("status", "--stack", both.stack.name, "--json", check=False)
    rows = [each for each in json.loads(printed.stdout)["managedIdentities"]["rows"] if each["cluster"] == "hc2"]

    assert {each["identity"] for each in rows} == {row.field for row, _ in ROWS}
    assert {each["state"] for each in rows} == {"exists"}
    assert {one["state"] for each in rows for one in each["federatedCredentials"]} == {"exists"}
    assert sum(len(each["federatedCredentials"]) for each in rows) == len(ROWS)


def _federation(both: BothWays) -> set[tuple[str, str]]:
    """Identity and check of what the doctor finds broken in the exchange of tokens."""
    options = ("--stack", both.stack.name, "--cluster", "hc2", "--stage", "federation", "--json")
    results = json.loads(both.stack.idstack("doctor", *options, check=False).stdout)
    assert {each["status"] for each in results} <= {"ok", "broken", "skipped"}
    return {(each["identity"], each["check"]) for each in results if each["status"] == "broken"}


def test_the_doctor_finds_why_a_token_is_not_exchanged(both: BothWays) -> None:
    stack, arm = both.stack, OutOfBand(both.stack).arm
    other = stack.resource("hc2-workload-ingress-federated-account")["id"]
    trust = arm("GET", other, MANAGED_IDENTITY_API)["properties"]
    before = _federation(both)
    arm("DELETE", stack.resource("hc2-workload-disk-federated-node")["id"], MANAGED_IDENTITY_API)
    arm("DELETE", stack.resource("hc2-workload-network-identity")["id"], MANAGED_IDENTITY_API)
    arm("PUT", other, MANAGED_IDENTITY_API, {"properties": {**trust, "audiences": ["api://AzureADTokenExchange"]}})
    found = _federation(both)
    container = stack.resource("hc2-issuer-container")["id"]
    arm("PUT", container, _STORAGE_API, {"properties": {"publicAccess": "None"}})
    closed = _federation(both)
    stack.up("--refresh")

    broken = {("disk", "federated-credential"), ("ingress", "federated-credential"), ("network", "managed-identity")}
    assert (before, found) == (set(), broken)
    assert closed == {(row.field, "issuer") for row, _ in ROWS}, "it explains the others"
    assert _federation(both) == set()


_LEAKED: Final = {"published": [2], "signing": 2, "leaked": [1]}


def test_a_withdrawn_key_signs_nothing_more(both: BothWays) -> None:
    row, subject = ROWS[0]
    before = both.guest
    cluster = self_managed(both.managed, serviceAccountSigningKey=_LEAKED)
    with both.stack.configured(hostedClusters=[both.managed, cluster]):
        both.stack.run(
            *("pulumi", "up", "--yes", "--skip-preview", "--non-interactive"),
            variables={
                "PULUMI_STACK": both.stack.name,
                "IDSTACK_CLOCK": rfc3339.render(datetime.now(UTC) + timedelta(hours=1)),
            },
        )

    assert before.exchange(both.client_id(row), before.token(subject)).error == 7000272
    forged = GuestCluster(both.stack, ISSUER, make(2048))
    known = public_half(before.pem).key_id
    assert forged.exchange(both.client_id(row), forged.token(subject, key_id=known)).error == 7000272


def test_another_way_is_refused_and_nothing_is_changed(both: BothWays) -> None:
    changed = {**self_managed(both.managed), "authentication": "managed-identities"}
    del changed["topology"], changed["private"]
    with both.stack.configured(hostedClusters=[both.managed, changed]):
        printed = both.stack.pulumi("preview", check=False)

    assert printed.returncode != 0
    assert "HyperShift never changes the way in which a HostedCluster signs in" in printed.stdout + printed.stderr


_KEPT: Final = ("cloud", "tenantId", "subscriptionId", "location", "resourceGroup", "tags", "protect")


@pytest.fixture(scope="module")
def adopted(both: BothWays, tmp_path_factory: pytest.TempPathFactory) -> Adopted:
    """A stack without a vault that adopts what `hypershift create iam azure` made for `hc3`."""
    both.stack.administer()
    directory = tmp_path_factory.mktemp("iam")
    named = create_iam(
        HyperShiftScripts(both.stack, directory), "hc3", "hc3-infra", ISSUER, directory / "workload-identities.json"
    )
    cluster = self_managed(both.managed, name="hc3", infraID="hc3-infra")
    for key in ("authentication", "issuer", "issuerName"):
        del cluster[key]
    stack = both.stack.beside(
        "local-iam", **{key: both.stack.configuration(key) for key in _KEPT}, hostedClusters=[cluster]
    )
    before = stack.inventory()
    file, imported = directory / "workload-identities.json", directory / "import.json"
    options = ("--cluster", "hc3", "--output", str(imported), "--stack", stack.name, "--json")
    report = json.loads(stack.idstack("import", "iam", str(file), *options).stdout)
    stack.idstack("import", "file", str(imported), "--stack", stack.name)
    assert stack.inventory() == before, "so far nothing has changed in Azure"
    steps = stack.up_with_steps()
    return Adopted(stack, named, report, steps, before)


def test_what_create_iam_made_is_adopted_as_it_is(adopted: Adopted) -> None:
    azure = adopted.stack.outputs["hostedClusters"]["hc3"]["hostedClusterSpec"]["platform"]["azure"]
    named = {field: value for field, value in adopted.named.items() if isinstance(value, dict)}

    assert azure["azureAuthenticationConfig"]["workloadIdentities"] == named
    assert adopted.before <= adopted.stack.inventory(), "nothing was deleted"
    assert not [each for each in adopted.steps.items() if "replace" in each[1] or "delete" in each[1]]
    created = {name for name, step in adopted.steps.items() if step == "create"}
    assert not [name for name in created if name.endswith("-identity") or "-federated-" in name]
    assert adopted.stack.preview() == {}


def test_the_report_says_what_up_does(adopted: Adopted) -> None:
    lines = {each["identity"]: each for each in adopted.report["findings"]}

    assert set(lines) == {row.field for row, _ in ROWS}
    assert all(each["next_up"].startswith("adopts it") for each in lines.values())
    assert adopted.report["configured"]["hostedClusters[0].authentication"] == "workload-identities"
    assert adopted.report["configured"]["hostedClusters[0].issuerURL"] == ISSUER


def test_a_cluster_moves_to_another_stack_and_goes_with_all_that_it_had(both: BothWays) -> None:
    stack, before = both.stack, both.stack.inventory()
    own = stack.beside(
        "local-hc2",
        **{key: stack.configuration(key) for key in (*_KEPT, "managementCluster", "credentials")},
        sharedStack=f"organization/idstack/{stack.name}",
        clusterSide="hypershift",
        hostedClusters=[self_managed(both.managed, serviceAccountSigningKey=_LEAKED)],
    )
    with stack.configured(hostedClusters=[both.managed]):
        stack.idstack("split", "--cluster", "hc2", "--to", own.name, "--stack", stack.name)
        own.idstack("up", "--stack", own.name)
        stack.up()
        assert own.preview() == stack.preview() == {}
    assert stack.inventory() == before
    own.pulumi("destroy", "--yes", "--skip-preview")

    assert not [key for kind, key in both.stack.inventory() if kind in ("arm", "blob") and "hc2" in key]
