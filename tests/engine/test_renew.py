"""`idstack renew`, as scheduled runs call it: what is due is renewed, and a change that waits goes on waiting."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from ops.renewal.guard import RenewedType
from tests.engine.changing import FAST, another_imported, with_applications
from tests.engine.held_faults import Fault, gate_refuses, held, vault_write_fails
from tests.engine.rotations import LIFE, Ageing
from tests.harness import LocalStack, running_stack

_LIFE: Final = {**LIFE, "propagation": {**FAST["propagation"], "timeoutSeconds": 10}}
_ALL: Final = frozenset({"hc1/nodePoolManagement", "hc1/disk", "hc2/nodePoolManagement"})
_LEFT_OUT: Final = re.compile(r"^(\S+/\S+): left out, (.*)$", re.MULTILINE)
_DATES: Final = ("notAfter", "renewAfter", "thumbprint", "generation")


class Renewing(Ageing):
    """A stack of two clusters, brought up sixty days ago, where each day a renewal of each identity is due."""

    def renew(self) -> subprocess.CompletedProcess[str]:
        """The command; a renewal that is due and left out makes it fail."""
        return self.stack.idstack("renew", check=False)

    @property
    def clusters(self) -> dict[str, dict[str, Any]]:
        """The configured clusters by name."""
        return {cluster["name"]: cluster for cluster in self.stack.configuration("hostedClusters")}


@pytest.fixture(scope="module")
def renewing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renewing]:
    with pytest.MonkeyPatch.context() as patch, running_stack(tmp_path_factory.mktemp("renew")) as stack:
        [configured] = stack.configuration("hostedClusters")
        imported = configured["identities"]["imageRegistry"]
        first = with_applications(configured, "nodePoolManagement", "disk")
        second = with_applications(configured, "nodePoolManagement", imported=another_imported(stack, imported))
        second |= {"name": "hc2", "infraID": "hc2-infra", "issuerURL": "https://hc2oidc.blob.core.windows.net/hc2oidc"}
        stack.configure(hostedClusters=[first, second], clusterSide="hypershift", credentials=_LIFE)
        renewing = Renewing(stack, datetime.now(UTC) - timedelta(days=60), patch)
        renewing.pass_a_day()
        stack.up()
        yield renewing


def _thumbprints(outputs: dict[str, Any]) -> dict[str, str]:
    return {
        f"{name}/{of}": row["thumbprint"]
        for name, cluster in outputs["hostedClusters"].items()
        for of, row in cluster["controlPlane"].items()
    }


def _without_dates(outputs: dict[str, Any]) -> dict[str, Any]:
    clusters = {
        name: {
            **cluster,
            "controlPlane": {
                of: {key: value for key, value in row.items() if key not in _DATES}
                for of, row in cluster["controlPlane"].items()
            },
        }
        for name, cluster in outputs["hostedClusters"].items()
    }
    return {**outputs, "hostedClusters": clusters}


@dataclass(frozen=True)
class Renewed:
    """What a run did: the identities it renewed and those it left out, with what it said of them, and its exit code.

    `kinds` are those of the documents in the cloud that it touched.
    """

    code: int
    identities: frozenset[str]
    left_out: dict[str, str]
    kinds: frozenset[str]
    printed: str


def _renewed(renewing: Renewing) -> Renewed:
    """A day later `renew`; nothing that is not a renewal happens."""
    stack = renewing.stack
    renewing.pass_a_day()
    outputs, cloud = stack.outputs, stack.contents()
    others = {resource["urn"]: resource for resource in stack.resources() if not _is_renewals(resource["type"])}
    done = renewing.renew()
    outputs_after, cloud_after = stack.outputs, stack.contents()
    assert "Traceback" not in done.stdout + done.stderr
    assert _without_dates(outputs_after) == _without_dates(outputs)
    assert {urn: _made(other) for urn, other in others.items()} == {
        resource["urn"]: _made(resource) for resource in stack.resources() if not _is_renewals(resource["type"])
    }
    before, after = _thumbprints(outputs), _thumbprints(outputs_after)
    assert cloud.keys() - cloud_after.keys() == set(), "nothing is gone"
    touched = {key for key, document in cloud_after.items() if cloud.get(key) != document}
    return Renewed(
        code=done.returncode,
        identities=frozenset(name for name in before if before[name] != after[name]),
        left_out=dict(_LEFT_OUT.findall(done.stdout)),
        kinds=frozenset(kind for kind, _ in touched),
        printed=done.stdout + done.stderr,
    )


def _is_renewals(kind: str) -> bool:
    """A type that renewals change; and a provider's, whose inputs are the configuration."""
    return kind in {*RenewedType} or kind.startswith("pulumi:providers:")


def _made(resource: dict[str, Any]) -> Any:
    """What of a resource a renewal must not change; components and the stack show the renewed dates."""
    return (resource.get("id"), resource.get("inputs"))


def test_before_anything_is_due_an_identity_without_a_second_slot_stops_nothing(renewing: Renewing) -> None:
    done = renewing.renew()

    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is renewed" in done.stdout


def test_what_is_due_is_renewed_and_a_second_run_changes_nothing(renewing: Renewing) -> None:
    renewed = _renewed(renewing)

    assert (renewed.code, renewed.identities, renewed.left_out) == (0, _ALL, {}), renewed
    assert renewed.kinds == {"entra-application", "keyvault-secret"}
    first = (renewing.stack.outputs, renewing.stack.contents())
    assert renewing.renew().returncode == 0
    assert (renewing.stack.outputs, renewing.stack.contents()) == first


@pytest.mark.slow
def test_a_cluster_taken_out_of_the_configuration_keeps_its_credentials(renewing: Renewing) -> None:
    with renewing.stack.configured(hostedClusters=[renewing.clusters["hc1"]]):
        renewed = _renewed(renewing)

    assert renewed.identities == {"hc1/nodePoolManagement", "hc1/disk"}, renewed
    assert renewed.left_out.keys() == {"hc2/nodePoolManagement"}
    assert "delete hc2-node-pool-management-credential-secret" in renewed.left_out["hc2/nodePoolManagement"]
    assert renewed.code == 1, "its renewal is due"


@pytest.mark.slow
def test_clusters_and_objects_that_a_waiting_change_adds_are_not_made(renewing: Renewing) -> None:
    third = {**renewing.clusters["hc2"], "name": "hc3", "infraID": "hc3-infra", "issuerURL": "https://hc3.example.com"}
    with renewing.stack.configured(hostedClusters=[*renewing.clusters.values(), third], clusterSide="stack"):
        renewed = _renewed(renewing)

    assert (renewed.code, renewed.identities, renewed.left_out) == (0, _ALL, {}), renewed


@pytest.mark.slow
def test_another_secret_name_source_or_encoding_waits_for_up(renewing: Renewing) -> None:
    first, second = renewing.clusters.values()
    imported = first["identities"]["imageRegistry"]
    identities = {**first["identities"], "nodePoolManagement": {"secretName": "mine"}, "disk": imported}
    changed = [{**first, "identities": identities}, {**second, "objectEncoding": "base64"}]
    with renewing.stack.configured(hostedClusters=changed):
        renewed = _renewed(renewing)

    assert (renewed.code, renewed.identities, renewed.kinds) == (1, frozenset(), frozenset()), renewed
    assert "secretName of hc1-node-pool-management" in renewed.left_out["hc1/nodePoolManagement"]
    assert "delete hc1-disk-entra-schedule" in renewed.left_out["hc1/disk"]
    assert "objectEncoding of hc2-node-pool-management" in renewed.left_out["hc2/nodePoolManagement"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [gate_refuses, vault_write_fails])
def test_a_renewal_that_fails_keeps_nobody_else_from_theirs(
    renewing: Renewing, fault: Callable[[LocalStack, str], Fault]
) -> None:
    stack, before = renewing.stack, renewing.stack.outputs
    renewing.pass_a_day()
    with held(stack, fault(stack, "hc1-disk")):
        failed = renewing.renew()
    meanwhile = stack.outputs
    recovered = renewing.renew()
    old, new, newest = map(_thumbprints, (before, meanwhile, stack.outputs))

    assert failed.returncode == 1, failed.stdout
    assert {name for name in old if old[name] != new[name]} == _ALL - {"hc1/disk"}
    disks = [outputs["hostedClusters"]["hc1"]["controlPlane"]["disk"] for outputs in (before, meanwhile)]
    assert disks[0] == disks[1], "the outputs go on to name what pods have"
    assert recovered.returncode == 0, recovered.stdout + recovered.stderr
    assert {name for name in new if new[name] != newest[name]} == {"hc1/disk"}


@pytest.mark.slow
def test_objects_that_a_waiting_change_removes_stay_as_they_are(renewing: Renewing) -> None:
    with renewing.stack.configured(clusterSide="stack"):
        renewing.stack.up()
    renewed = _renewed(renewing)

    assert "Deployment" not in renewed.kinds
    assert (renewed.code, frozenset(renewed.left_out)) == (1, _ALL), renewed
    assert not renewed.identities
