"""docs/guides/hypershift.md with HyperShift's own operators: installation, hand-over, renewal, removal, return."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from identity.catalogue import CONTROL_PLANE
from identity.credentials import rfc3339
from identity.credentials.mounted_file import DirectoryWatch
from localcloud.testing.running import StateDirectory, read_requests
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack, running_stack
from tests.hypershift.management_cluster import (
    CONFIGURATIONS,
    NAMESPACE,
    ManagementCluster,
    conditions,
    handed_over,
    mounted_versions,
    rolled_out,
)
from tests.hypershift.programs import write_programs
from tests.hypershift.registry import Registry, running_registry

HOSTED: Final = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/hc1"
_PLANE: Final = f"/apis/hypershift.openshift.io/v1beta1/namespaces/{NAMESPACE}/hostedcontrolplanes/hc1"
_OPERATOR: Final = "control-plane-operator"
_IDENTITY: Final = "controlPlaneOperator"
# Those of a HostedCluster that the hand-over decides, and those that the control-plane operator adds once it signs in.
_ACCEPTED: Final = (
    "ValidConfiguration",
    "SupportedHostedCluster",
    "ValidReleaseImage",
    "PlatformCredentialsFound",
    "ReconciliationSucceeded",
)
_SIGNED_IN: Final = ("ValidHostedControlPlaneConfiguration", "ValidAzureKMSConfig", "InfrastructureReady")
_NETWORK: Final = r"/virtualnetworks/"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3D{_OPERATOR}"


@dataclass(frozen=True, kw_only=True)
class Story:
    """What each step left, in the order of the steps."""

    stack_side: dict[str, Any]
    rendered: str
    hosted: dict[str, Any]
    operators_side: dict[str, Any]
    requests: set[tuple[str, str, int]]
    unchanged: str
    renewed: dict[str, str]
    revoked: dict[str, str]
    after_revocation: set[tuple[str, str, int]]
    hosted_after_revocation: dict[str, Any]
    removal: list[str]
    namespace_after_removal: int
    stack_side_again: dict[str, Any]


@pytest.fixture(scope="module")
def story(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with steps(binaries, tmp_path_factory.mktemp("hypershift")) as all_steps:
        yield Story(**all_steps.take())


@dataclass(frozen=True)
class Steps:
    """The steps, one after the other."""

    stack: LocalStack
    http: httpx.Client
    registry: Registry
    binaries: Path

    def take(self) -> dict[str, Any]:
        """Take every step; returns what each left."""
        facts: dict[str, Any] = {}
        stack, http, cluster = self.stack, self.http, self.cluster()
        stack.up()
        facts["stack_side"] = handed_over(http)
        with stack.configured(clusterSide="hypershift"):
            stack.up()
            printed = stack.idstack("export", "hypershift").stdout.split("\n\n")
            self.install(cluster, printed)
            facts["rendered"] = cluster.shell(_only(printed, "--render"))
        [first] = stack.configuration("hostedClusters")
        hosted = {
            "releaseImage": self.registry.release,
            "pullSecret": "hc1-pull-secret",
            "serviceAccountSigningKey": "hc1-signing-key",
        }
        with stack.configured(clusterSide="hypershift", hostedClusters=[{**first, "hostedCluster": hosted}]):
            stack.up()
            self._wait_for_the_control_plane(cluster, facts["stack_side"])
            facts |= {"hosted": http.get(HOSTED).json(), "operators_side": handed_over(http)}
            facts["requests"] = self._requests()
            facts["unchanged"] = stack.up("--expect-no-changes").stdout
            facts["renewed"] = self._rotate()
            facts["revoked"] = self._rotate("--revoke")
            before = rfc3339.render(datetime.now(UTC))
            http.delete(_PODS).raise_for_status()
            self._wait_for_sign_in(before)
            facts["after_revocation"] = self._requests(before)
            facts["hosted_after_revocation"] = http.get(_PLANE).json()
        with stack.configured(clusterSide="hypershift", hostedClusters=[], allowCredentialLoss=["hc1"]):
            facts["removal"] = list(stack.up_with_steps())
            cluster.wait("delete", f"namespace/{NAMESPACE}", namespace="default")
            facts["namespace_after_removal"] = http.get(f"/api/v1/namespaces/{NAMESPACE}").status_code
        self._purge()
        stack.up()
        facts["stack_side_again"] = handed_over(http)
        stack.pulumi("destroy", "--yes", "--skip-preview")
        return facts

    def cluster(self) -> ManagementCluster:
        """With what the printed commands take from the variables of HyperShift's scripts."""
        files = {
            "PULL_SECRET": json.dumps({"auths": {self.registry.host: {"auth": _encoded("user:password")}}}),
            "EXTERNAL_DNS_SERVICE_PRINCIPAL_FILEPATH": "{}",
            "SA_TOKEN_ISSUER_PRIVATE_KEY_PATH": _signing_key(),
            "AZURE_CREDS": json.dumps(dict.fromkeys(("subscriptionId", "tenantId", "clientId", "clientSecret"), "0")),
        }
        for name, text in files.items():
            (self.stack.root / name).write_text(text, encoding="utf-8")
        variables = {name: str(self.stack.root / name) for name in files}
        images = {"HYPERSHIFT_IMAGE": self.registry.hypershift, "RELEASE_IMAGE": self.registry.release}
        return ManagementCluster(self.stack, self.binaries, variables | images)

    def install(self, cluster: ManagementCluster, printed: list[str]) -> None:
        """Run what `export` printed, and make what docs/guides/hypershift.md asks for before the cluster."""
        cluster.apply_definitions(_only(printed, "kubectl apply"))
        cluster.shell(_only(printed, "hypershift install"))
        # Pods share this machine's ports, so there is room for one.
        cluster.kubectl("--namespace", "hypershift", "scale", "deployment/operator", "--replicas=1")
        cluster.wait("condition=Available", "deployment/operator", namespace="hypershift")
        cluster.kubectl("create", "namespace", "clusters")
        for name, key, file in (
            ("hc1-pull-secret", ".dockerconfigjson", "PULL_SECRET"),
            ("hc1-signing-key", "key", "SA_TOKEN_ISSUER_PRIVATE_KEY_PATH"),
        ):
            source = f"--from-file={key}={self.stack.root / file}"
            cluster.kubectl("--namespace", "clusters", "create", "secret", "generic", name, source)

    def _wait_for_the_control_plane(self, cluster: ManagementCluster, expected: dict[str, Any]) -> None:
        for condition in _ACCEPTED:
            cluster.wait(f"condition={condition}", "hostedcluster/hc1", namespace="clusters")
        cluster.wait("condition=Available", f"deployment/{_OPERATOR}")
        with rolled_out(self.http):
            for obj in expected:
                cluster.wait("create", obj)
        for condition in _SIGNED_IN:
            cluster.wait(f"condition={condition}", "hostedcluster/hc1", namespace="clusters")

    def _rotate(self, *options: str) -> dict[str, str]:
        """Renew the operator's certificate; returns the vault's version, once the operator's pod has mounted it."""
        # Of the pods only the operator's run: this machine has no other program of theirs.
        done = self.stack.idstack("rotate", "--identity", _IDENTITY, *options, check=False)
        assert "idstack: there are findings" in done.stderr, done.stdout + done.stderr
        name = self.stack.control_plane[_IDENTITY]["credentialsSecretName"]
        with OutOfBand(self.stack).secrets() as vault:
            version = str(vault.get_secret(name).properties.version)
        self._follow_mounts(name, version)
        return {name: version}

    def _purge(self) -> None:
        """Free the names of the secrets that the removal has deleted."""
        with OutOfBand(self.stack).secrets() as vault:
            for deleted_secret in list(vault.list_deleted_secrets()):
                vault.purge_deleted_secret(str(deleted_secret.name))

    def _follow_mounts(self, name: str, version: str) -> None:
        path = f"/apis/secrets-store.csi.x-k8s.io/v1/namespaces/{NAMESPACE}/secretproviderclasspodstatuses"
        with self.http.stream("GET", path, params={"watch": "1", "timeoutSeconds": "300"}, timeout=330) as changes:
            for _ in changes.iter_lines():
                if mounted_versions(self.http, _OPERATOR).get(name) == version:
                    return
        raise AssertionError(f"{_OPERATOR} has not mounted {version} of {name}")

    def _wait_for_sign_in(self, since: str) -> None:
        """Wait until the operator's next pod has asked for the network."""
        log = StateDirectory(self.stack.state).requests_file
        for _ in DirectoryWatch(log.parent).changes(lambda: False):
            if _statuses(self._requests(since), _NETWORK):
                return

    def _requests(self, since: str = "") -> set[tuple[str, str, int]]:
        """Method, path and status of what clients in Go have asked since a time (RFC 3339)."""
        log = read_requests(StateDirectory(self.stack.state).requests_file)
        found = [request for request in log if request.time >= since and "azsdk-go" in request.client]
        return {(request.method, request.path.lower(), request.status) for request in found}


@contextmanager
def steps(binaries: Path, root: Path) -> Iterator[Steps]:
    """The steps on a new local cloud, whose pods run HyperShift's programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCALCLOUD_PROGRAMS", str(root / "programs"))
        folder = root / "stack"
        folder.mkdir()
        with running_stack(folder) as stack, stack.kubernetes("administrator") as http:
            at = stack.environment
            write_programs(root / "programs", binaries, proxy=at.proxy_endpoint, ca_file=at.ca_file)
            with running_registry(StateDirectory(stack.state).server_file) as registry:
                yield Steps(stack, http, registry, binaries)


def _only(printed: list[str], words: str) -> str:
    [found] = [line for line in printed if words in line]
    return found


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _signing_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def _statuses(requests: set[tuple[str, str, int]], pattern: str) -> set[int]:
    return {status for _, path, status in requests if re.search(pattern, path)}


def test_hypershift_takes_the_hosted_cluster(story: Story) -> None:
    found = conditions(story.hosted)

    assert {name: found[name][0] for name in (*_ACCEPTED, *_SIGNED_IN)} == dict.fromkeys(
        (*_ACCEPTED, *_SIGNED_IN), "True"
    )
    assert found["ValidAzureKMSConfig"][1] == "All is well"


def test_the_cli_renders_the_printed_command(story: Story) -> None:
    assert "kind: HostedCluster" in story.rendered


def test_the_operators_write_what_the_stack_writes_for_each_identity(story: Story) -> None:
    classes = [name for name in story.stack_side if name.startswith("secretproviderclasses/")]
    assert len(classes) == len([row for row in CONTROL_PLANE if row.enabled_by_default])

    assert {name: story.operators_side[name] for name in classes} == {name: story.stack_side[name] for name in classes}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_operators_write_the_stacks_configuration(story: Story, name: str) -> None:
    assert story.operators_side[name] == story.stack_side[name]


def test_the_control_plane_operator_signs_in_with_what_is_mounted(story: Story) -> None:
    assert _statuses(story.requests, _NETWORK) == {200}
    assert _statuses(story.requests, r"/networksecuritygroups/") == {200}
    # A client of Key Vault learns from a first refusal where to sign in.
    assert _statuses(story.requests, r"/keys/[^/]+/[^/]+/encrypt") == {200, 401}


def test_the_next_run_changes_nothing_of_what_the_operators_changed(story: Story) -> None:
    assert "unchanged" in story.unchanged


def test_a_renewed_and_a_revoked_certificate_reach_the_operators_pod(story: Story) -> None:
    assert story.renewed.keys() == story.revoked.keys()
    assert story.renewed != story.revoked


def test_after_a_revocation_the_operator_signs_in_anew(story: Story) -> None:
    assert _statuses(story.after_revocation, _NETWORK) == {200}


def test_the_hosted_cluster_goes_before_everything_it_needs(story: Story) -> None:
    order = {name: at for at, name in enumerate(story.removal)}
    hosted = order["hc1-hosted-cluster-object"]
    for part in ("-secret", "-role"):
        needed = {name for name in order if part in name}
        assert needed, part
        assert all(order[name] > hosted for name in needed), story.removal
    assert story.namespace_after_removal == httpx.codes.NOT_FOUND


def test_back_on_the_stacks_side_its_objects_are_the_same(story: Story) -> None:
    assert story.stack_side_again == story.stack_side
