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
from tests.engine.changing import require_goes_first
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
from tests.hypershift.registry import Registry, running_registry
from tests.rooted import SCRIPT, UNSHARED

HOSTED: Final = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/hc1"
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


@dataclass(frozen=True)
class Steps:
    """The steps, one after the other."""

    stack: LocalStack
    http: httpx.Client
    registry: Registry
    binaries: Path

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

    def wait_for_the_control_plane(self, cluster: ManagementCluster, expected: dict[str, Any]) -> None:
        """Wait until HyperShift accepts the cluster, its operator signs in, and the expected objects are there."""
        for condition in _ACCEPTED:
            cluster.wait(f"condition={condition}", "hostedcluster/hc1", namespace="clusters")
        cluster.wait("condition=Available", f"deployment/{_OPERATOR}")
        with rolled_out(self.http):
            for obj in expected:
                cluster.wait("create", obj)
        for condition in _SIGNED_IN:
            cluster.wait(f"condition={condition}", "hostedcluster/hc1", namespace="clusters")

    def rotate(self, *options: str) -> dict[str, str]:
        """Renew the operator's certificate; returns the vault's version, once the operator's pod has mounted it."""
        # Of the pods only the operator's run: this machine has no other program of theirs.
        done = self.stack.idstack("rotate", "--identity", _IDENTITY, *options, check=False)
        assert "idstack: there are findings" in done.stderr, done.stdout + done.stderr
        name = self.stack.control_plane[_IDENTITY]["credentialsSecretName"]
        with OutOfBand(self.stack).secrets() as vault:
            version = str(vault.get_secret(name).properties.version)
        self._follow_mounts(name, version)
        return {name: version}

    def purge(self) -> None:
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

    def wait_for_sign_in(self, since: str) -> None:
        """Wait until the operator's next pod has asked for the network."""
        log = StateDirectory(self.stack.state).requests_file
        for _ in DirectoryWatch(log.parent).changes(lambda: False):
            if _statuses(self.requests(since), _NETWORK):
                return

    def requests(self, since: str = "") -> set[tuple[str, str, int]]:
        """Method, path and status of what clients in Go have asked since a time (RFC 3339)."""
        log = read_requests(StateDirectory(self.stack.state).requests_file)
        found = [request for request in log if request.time >= since and "azsdk-go" in request.client]
        return {(request.method, request.path.lower(), request.status) for request in found}


# The two operators, and what they are started with; a program that is here for other purposes waits.
_OPERATORS: Final = ("hypershift-operator", "control-plane-operator")
# The network is this machine's: where a credential probe listens at port 8080 of its pod's address, nobody has
# that port of every address, as metrics ask for.
_WRAPPER: Final = """#!/bin/sh -e
case "$1" in run|init) ;; *) exec sleep infinity ;; esac
for each; do
  shift
  [ "$each" != 0.0.0.0:8080 ] || each=127.0.0.1:0
  set -- "$@" "$each"
done
export {proxy}SSL_CERT_FILE=/ca.crt PATH="$PATH:/usr/sbin:/sbin"
exec {unshared} '{script}' "$0" "$PROBE_MOUNT_ROOT" {roots}/$$ {ca} "" {program} "$@"
"""


def write_programs(folder: Path, binaries: Path, *, proxy: str, ca_file: str) -> None:
    """Write a command for each operator; `proxy` leads Azure's public names to the local cloud."""
    folder.mkdir()
    roots = folder / ".roots"
    roots.mkdir()
    for name in _OPERATORS:
        # Whatever the hypershift-operator has as its proxy, it hands on to every pod of a control plane.
        variable = f"HTTPS_PROXY={proxy} " if name != "hypershift-operator" else ""
        text = _WRAPPER.format(
            **{"proxy": variable, "ca": ca_file, "roots": roots, "program": binaries / name},
            **{"unshared": " ".join(UNSHARED), "script": SCRIPT},
        )
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o700)


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


def test_operators_take_over_renew_and_give_back_what_the_stack_makes(binaries: Path, tmp_path: Path) -> None:
    with steps(binaries, tmp_path) as made:
        stack, http, cluster = made.stack, made.http, made.cluster()
        stack.up()
        stack_side = handed_over(http)
        with stack.configured(clusterSide="hypershift"):
            stack.up()
            printed = stack.idstack("export", "hypershift").stdout.split("\n\n")
            made.install(cluster, printed)
            assert "kind: HostedCluster" in cluster.shell(_only(printed, "--render"))
        [first] = stack.configuration("hostedClusters")
        hosted = {
            "releaseImage": made.registry.release,
            "pullSecret": "hc1-pull-secret",
            "serviceAccountSigningKey": "hc1-signing-key",
        }
        with stack.configured(clusterSide="hypershift", hostedClusters=[{**first, "hostedCluster": hosted}]):
            stack.up()
            made.wait_for_the_control_plane(cluster, stack_side)
            _require_accepted(http.get(HOSTED).json())
            _require_the_same(handed_over(http), stack_side)
            _require_signed_in(made.requests())
            assert "unchanged" in stack.up("--expect-no-changes").stdout
            renewed, revoked = made.rotate(), made.rotate("--revoke")
            assert renewed.keys() == revoked.keys()
            assert renewed != revoked
            before = rfc3339.render(datetime.now(UTC))
            http.delete(_PODS).raise_for_status()
            made.wait_for_sign_in(before)
            assert _statuses(made.requests(before), _NETWORK) == {200}
        with stack.configured(clusterSide="hypershift", hostedClusters=[], allowCredentialLoss=["hc1"]):
            removal = list(stack.up_with_steps())
            require_goes_first("hc1-hosted-cluster-object", removal, "-secret", "-role")
            cluster.wait("delete", f"namespace/{NAMESPACE}", namespace="default")
            assert http.get(f"/api/v1/namespaces/{NAMESPACE}").status_code == httpx.codes.NOT_FOUND
        made.purge()
        stack.up()
        assert handed_over(http) == stack_side
        stack.pulumi("destroy", "--yes", "--skip-preview")


def _require_accepted(hosted: dict[str, Any]) -> None:
    found, wanted = conditions(hosted), (*_ACCEPTED, *_SIGNED_IN)

    assert {name: found[name][0] for name in wanted} == dict.fromkeys(wanted, "True")
    assert found["ValidAzureKMSConfig"][1] == "All is well"


def _require_the_same(operators: dict[str, Any], stacks: dict[str, Any]) -> None:
    """The operators write what the stack writes for each identity, and its configurations."""
    classes = [name for name in stacks if name.startswith("secretproviderclasses/")]
    assert len(classes) == len([row for row in CONTROL_PLANE if row.enabled_by_default])
    for name in (*classes, *CONFIGURATIONS):
        assert operators[name] == stacks[name]


def _require_signed_in(requests: set[tuple[str, str, int]]) -> None:
    """The control-plane operator signs in with what is mounted."""
    assert _statuses(requests, _NETWORK) == {200}
    assert _statuses(requests, r"/networksecuritygroups/") == {200}
    # A client of Key Vault learns from a first refusal where to sign in.
    assert _statuses(requests, r"/keys/[^/]+/[^/]+/encrypt") == {200, 401}
