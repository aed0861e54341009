"""A stack with one cluster of each way: the self-managed one's service accounts sign in, as their probes prove."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity, FederatedSubject
from identity.credentials import rfc3339
from identity.resource_types import MANAGED_IDENTITY_API
from ops.world.cluster_state import local_probes
from ops.world.seen import SeenReport
from tests.engine.hypershift_scripts import HyperShiftScripts
from tests.engine.other_stacks import move
from tests.engine.out_of_band import OutOfBand
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack

pytestmark = pytest.mark.slow

ISSUER: Final = "https://hc2created.blob.core.windows.net/hc2created"
ROWS: Final = [(row, subject) for row in CONTROL_PLANE if row.workload for subject in row.workload.subjects]
NAMESPACE: Final = "clusters-hc2"
# Seconds until a probe has certainly made its next round, which begins once a minute.
_NEXT_ROUND: Final = 150
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


def azure(stack: LocalStack) -> set[tuple[str, str]]:
    """What there is but for the pods, which have new names in a new stack."""
    return {thing for thing in stack.inventory() if thing[0] != "kubernetes"}


@dataclass
class BothWays:
    """A stack with `hc1` of the first way and `hc2` of the second; `proven` are the rows of its service accounts."""

    stack: LocalStack
    managed: dict[str, Any]
    again: dict[str, str]
    proven: list[dict[str, Any]]

    def probe(self, row: ControlPlaneIdentity, subject: FederatedSubject) -> SeenReport | None:
        """The last report of a service account's probe."""
        assert row.workload is not None
        found = local_probes(self.stack.environment).probes
        return found[NAMESPACE, row.workload.probe_name(subject)].report

    def sign_wrongly(self, row: ControlPlaneIdentity, subject: FederatedSubject, claim: str, value: str) -> None:
        """Give a service account's probe a token with another claim."""
        assert row.workload is not None
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{row.workload.probe_name(subject)}"
        with self.stack.kubernetes() as http:
            [volume] = http.get(path).json()["spec"]["template"]["spec"]["volumes"]
            volume["csi"]["volumeAttributes"][claim] = value
            changed = {"spec": {"template": {"spec": {"volumes": [volume]}}}}
            http.patch(path, json=changed, headers={"Content-Type": "application/merge-patch+json"}).raise_for_status()

    def refused(self, row: ControlPlaneIdentity, subject: FederatedSubject) -> str:
        """Entra ID's code for a token of the service account, as its probe reports it once it has logged a refusal."""
        log = self._log(row, subject)
        follow = ["timeout", str(_NEXT_ROUND), "tail", "--lines=1", "--follow=name", "--retry", str(log)]
        with subprocess.Popen(follow, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as lines:
            assert lines.stdout is not None
            assert any("AADSTS" in line for line in lines.stdout), f"{subject.subject} still signs in"
            lines.terminate()
        report = self.probe(row, subject)
        assert report is not None
        return (report.sign_in.error or "").partition(":")[0]

    def _log(self, row: ControlPlaneIdentity, subject: FederatedSubject) -> Path:
        """Of the probe's pod, once there is one as the Deployment has it now."""
        assert row.workload is not None
        deployment = row.workload.probe_name(subject)
        path, pods = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", f"/api/v1/namespaces/{NAMESPACE}/pods"
        selected = {"labelSelector": f"app.kubernetes.io/instance={deployment}", "watch": "true"}
        with self.stack.kubernetes() as http:
            wanted = http.get(f"{path}/{deployment}").json()["spec"]["template"]["spec"]["volumes"]
            with http.stream("GET", pods, params=selected) as changes:
                found = (json.loads(line)["object"] for line in changes.iter_lines())
                pod = next(changed for changed in found if changed["spec"]["volumes"] == wanted)
        [container] = pod["spec"]["containers"]
        return Path(self.stack.state, "logs", NAMESPACE, pod["metadata"]["name"], f"{container['name']}.log")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothWays]:
    with small_stack(tmp_path_factory.mktemp("both"), "hypershift") as stack:
        [managed] = stack.configuration("hostedClusters")
        stack.configure(hostedClusters=[managed, self_managed(managed)])
        printed = stack.idstack("up", "--stack", stack.name, "--json", check=False)
        yield BothWays(stack, managed, stack.preview(), json.loads(printed.stdout)["serviceAccounts"])


def test_a_stack_has_clusters_of_both_ways(both: BothWays) -> None:
    spec = both.stack.outputs["hostedClusters"]["hc2"]["hostedClusterSpec"]["platform"]["azure"]

    assert both.again == {}
    assert set(spec["azureAuthenticationConfig"]) == {"azureAuthenticationConfigType", "workloadIdentities"}
    assert both.stack.outputs["hostedClusters"]["hc2"]["controlPlane"] == {}


def test_a_token_of_each_subject_opens_what_its_row_proves(both: BothWays) -> None:
    assert [(proof["identity"], proof["subject"]) for proof in both.proven] == [
        (row.field, subject.subject) for row, subject in ROWS
    ]
    assert {proof["report"]["proof"]["status"] for proof in both.proven} == {200}


# What a token says wrongly, and Entra ID's code for it.
_WRONG: Final = (
    ("issuer", "https://elsewhere.blob.core.windows.net/elsewhere", "AADSTS700211"),
    ("subject", "system:serviceaccount:default:default", "AADSTS700213"),
    ("subject", ROWS[-1][1].subject, "AADSTS700213"),
    ("audience", "sts.amazonaws.com", "AADSTS700212"),
)


def _federation(both: BothWays) -> set[tuple[str, str]]:
    """Identity and check of what the doctor finds broken in the exchange of tokens."""
    options = ("--stack", both.stack.name, "--cluster", "hc2", "--stage", "federation", "--json")
    results = json.loads(both.stack.idstack("doctor", *options, check=False).stdout)["results"]
    assert {result["status"] for result in results} <= {"ok", "broken", "skipped"}
    return {(result["identity"], result["check"]) for result in results if result["status"] == "broken"}


def test_a_probe_says_why_a_token_is_refused(both: BothWays) -> None:
    wrong = list(zip(ROWS, _WRONG, strict=False))
    for account, (claim, value, _) in wrong:
        both.sign_wrongly(*account, claim, value)

    assert [both.refused(*account) for account, _ in wrong] == [code for _, (_, _, code) in wrong]
    assert _federation(both) == {(row.field, "exchange") for (row, _), _ in wrong}


def test_status_has_each_identity_and_each_of_its_credentials(both: BothWays) -> None:
    printed = both.stack.idstack("status", "--stack", both.stack.name, "--json", check=False)
    rows = [row for row in json.loads(printed.stdout)["managedIdentities"]["rows"] if row["cluster"] == "hc2"]

    assert {row["identity"] for row in rows} == {row.field for row, _ in ROWS}
    assert {row["state"] for row in rows} == {"exists"}
    assert {one["state"] for row in rows for one in row["federatedCredentials"]} == {"exists"}
    assert sum(len(row["federatedCredentials"]) for row in rows) == len(ROWS)


def test_the_doctor_finds_why_a_token_is_not_exchanged(both: BothWays) -> None:
    stack, arm = both.stack, OutOfBand(both.stack).arm
    other = stack.resource("hc2-workload-ingress-federated-account")["id"]
    trust = arm("GET", other, MANAGED_IDENTITY_API)["properties"]
    stack.idstack("up", "--stack", stack.name, check=False)
    before = _federation(both)
    arm("DELETE", stack.resource("hc2-workload-disk-federated-node")["id"], MANAGED_IDENTITY_API)
    arm("DELETE", stack.resource("hc2-workload-network-identity")["id"], MANAGED_IDENTITY_API)
    arm("PUT", other, MANAGED_IDENTITY_API, {"properties": {**trust, "audiences": ["api://AzureADTokenExchange"]}})
    found = _federation(both)
    container = stack.resource("hc2-issuer-container")["id"]
    arm("PUT", container, _STORAGE_API, {"properties": {"publicAccess": "None"}})
    closed = _federation(both)
    # It waits until every probe signs in again.
    stack.idstack("up", "--stack", stack.name, "--refresh", check=False)

    broken = {("disk", "federated-credential"), ("ingress", "federated-credential"), ("network", "managed-identity")}
    assert (before, found) == (set(), broken)
    assert closed == {(row.field, "issuer") for row, _ in ROWS}, "it explains the others"
    assert _federation(both) == set()


_LEAKED: Final = {"published": [2], "signing": 2, "leaked": [1]}


def test_a_withdrawn_key_signs_nothing_more(both: BothWays) -> None:
    row, subject = ROWS[-1]
    cluster = self_managed(both.managed, serviceAccountSigningKey=_LEAKED)
    with both.stack.configured(hostedClusters=[both.managed, cluster]):
        both.stack.up(IDSTACK_CLOCK=rfc3339.render(datetime.now(UTC) + timedelta(hours=1)))

    assert both.refused(row, subject) == "AADSTS7000272"


_VERSION: Final = "2023-01-31"


def create_iam(scripts: HyperShiftScripts, cluster: str, infra_id: str, issuer_url: str, file: Path) -> dict[str, Any]:
    """Make the identities of a cluster with KMS, and write the file; returns its content.

    By the same requests as `hypershift create iam azure`, and `create infra azure --assign-identity-roles`. Sources in
    openshift/hypershift at 3ee9615: `cmd/infra/azure/identities.go`, `cmd/infra/azure/rbac.go:86-133`.
    """
    found: dict[str, Any] = {}
    for row in CONTROL_PLANE:
        if row.workload is None:
            continue
        name = f"{cluster}-{row.workload.name}-{infra_id}"
        identity = f"{scripts.group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
        made = scripts.arm("PUT", identity, _VERSION, {"location": "eastus"})["properties"]
        for subject in row.workload.subjects:
            last = f"-{subject.suffix}" if subject.suffix else ""
            credential = f"{cluster}-{row.workload.stem or row.workload.name}-fed-id{last}"
            federated = {"issuer": issuer_url, "subject": subject.subject, "audiences": ["openshift"]}
            path = f"{identity}/federatedIdentityCredentials/{credential}"
            scripts.arm("PUT", path, _VERSION, {"properties": federated})
        if row.workload.path is None:
            scripts.assign_as_the_cli(infra_id, row.component, row.hypershift, made["principalId"])
            found[row.field] = {"clientID": made["clientId"]}
        else:
            found[f"{row.field}ClientID"] = made["clientId"]
    file.write_text(json.dumps(found, indent=2), encoding="utf-8")
    return found


def test_what_create_iam_made_is_adopted_as_it_is(both: BothWays, tmp_path: Path) -> None:
    """By a stack without a vault: what `hypershift create iam azure` made for `hc3`."""
    both.stack.administer()
    file, imported = tmp_path / "workload-identities.json", tmp_path / "import.json"
    named = create_iam(HyperShiftScripts(both.stack, tmp_path), "hc3", "hc3-infra", ISSUER, file)
    cluster = self_managed(both.managed, name="hc3", infraID="hc3-infra")
    for key in ("authentication", "issuer", "issuerName"):
        del cluster[key]
    stack = both.stack.beside("local-iam", "tags", "protect", hostedClusters=[cluster])
    before = stack.inventory()
    options = ("--cluster", "hc3", "--output", str(imported), "--stack", stack.name, "--json")
    report = json.loads(stack.idstack("import", "iam", str(file), *options).stdout)
    stack.idstack("import", "file", str(imported), "--stack", stack.name)
    assert stack.inventory() == before, "so far nothing has changed in Azure"
    lines = {finding["identity"]: finding for finding in report["findings"]}
    assert set(lines) == {row.field for row, _ in ROWS}
    assert all(line["nextUp"].startswith("adopts it") for line in lines.values())
    assert report["configured"]["hostedClusters[0].authentication"] == "workload-identities"
    assert report["configured"]["hostedClusters[0].issuerURL"] == ISSUER

    steps = stack.up_with_steps()

    azure = stack.outputs["hostedClusters"]["hc3"]["hostedClusterSpec"]["platform"]["azure"]
    assert azure["azureAuthenticationConfig"]["workloadIdentities"] == {
        field: value for field, value in named.items() if isinstance(value, dict)
    }
    assert before <= stack.inventory(), "nothing was deleted"
    assert not [step for step in steps.items() if "replace" in step[1] or "delete" in step[1]]
    created = {name for name, step in steps.items() if step == "create"}
    assert not [name for name in created if name.endswith("-identity") or "-federated-" in name]
    assert stack.preview() == {}


def test_a_cluster_moves_to_another_stack_and_goes_with_all_that_it_had(both: BothWays) -> None:
    stack, before = both.stack, azure(both.stack)
    own = stack.beside(
        "local-hc2",
        *("tags", "protect", "managementCluster", "credentials"),
        sharedStack=f"organization/idstack/{stack.name}",
        clusterSide="hypershift",
        hostedClusters=[self_managed(both.managed, serviceAccountSigningKey=_LEAKED)],
    )
    with stack.configured(hostedClusters=[both.managed]):
        move(stack, "hc2", own.name)
        own.idstack("up", "--stack", own.name)
        stack.up()
        assert own.preview() == stack.preview() == {}
    assert azure(stack) == before
    own.idstack("down", "--stack", own.name)

    left = stack.inventory()
    assert not [key for kind, key in left if kind in ("arm", "blob") and "hc2" in key]
    assert ("kubernetes", f"core/namespaces//{NAMESPACE}") not in left
