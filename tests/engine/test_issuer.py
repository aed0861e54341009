"""An issuer that the stack makes: its tokens are exchanged, its keys change in order, and nobody else has them."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
import pytest

from identity import resource_types
from identity.catalogue_rows import DataPlaneIdentity
from identity.credentials import rfc3339
from identity.credentials.service_account_key import make, public_half
from tests.engine.key_material import KeySearch, everything, vault_keys
from tests.engine.service_accounts import SUBJECTS, GuestCluster, proof_of
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack

pytestmark = pytest.mark.nightly

ISSUER: Final = "https://hc1created.blob.core.windows.net/hc1created"
SECRET: Final = "/api/v1/namespaces/clusters/secrets/hc1-sa-signing-key"
ETCD_SECRET: Final = "/api/v1/namespaces/clusters/secrets/hc1-etcd-encryption-key"
# The stack writes the HostedCluster, with a key of its own for etcd.
_GIVEN: Final = {"releaseImage": "registry.example.com/release:1", "pullSecret": "pull-secret"}
MADE: Final = {
    *("hc1-issuer", "hc1-issuer-account", "hc1-issuer-container", "hc1-issuer-deployer"),
    *("hc1-issuer-deployer-account", "hc1-issuer-key-1", "hc1-issuer-documents", "hc1-signing-key-secret"),
    *("hc1-encryption-key", "hc1-encryption-key-secret"),
}
# What is left after the rotation.
_SECOND: Final = {"published": [2], "signing": 2}


@dataclass
class Issued:
    """A stack with an issuer of its own, and what was seen on the way."""

    stack: LocalStack
    first: dict[str, str]
    again: dict[str, str]
    printed: dict[str, str | bytes] = field(default_factory=dict)

    @property
    def secret(self) -> dict[str, str]:
        """The Secret that the HostedCluster names, decoded."""
        with self.stack.kubernetes("administrator") as http:
            found = http.get(SECRET).raise_for_status().json()
        return {name: base64.b64decode(value).decode() for name, value in found["data"].items()}

    def document(self, path: str) -> httpx.Response:
        """A document of the issuer, as anybody gets it."""
        local = self.stack.environment
        trust = ssl.create_default_context(cafile=local.ca_file)
        headers = {"Host": "hc1created.blob.core.windows.net"}
        return httpx.get(f"{local.blob_endpoint}/hc1created{path}", headers=headers, verify=trust, trust_env=False)

    @property
    def published(self) -> list[str]:
        """The ids of the published keys."""
        return [key["kid"] for key in self.document("/openid/v1/jwks").json()["keys"]]

    @property
    def guest(self) -> GuestCluster:
        """The guest cluster, whose kube-apiserver signs with the Secret's key."""
        return GuestCluster(self.stack, ISSUER, self.secret["key"])

    def client_id(self, row: DataPlaneIdentity) -> str:
        """The managed identity of a row of the catalogue."""
        return str(self.stack.outputs["hostedClusters"]["hc1"]["dataPlane"][row.field])

    def rotate(self, published: list[int], signing: int, now: datetime, *, check: bool = True) -> str:
        """Change the keys at that moment; returns what the engine printed."""
        key = {"published": published, "signing": signing}
        with self.stack.configured(hostedClusters=[_cluster(self.stack, serviceAccountSigningKey=key)]):
            done = self.stack.up(check=check, IDSTACK_CLOCK=rfc3339.render(now))
        self.printed[f"rotation to {signing} of {published}"] = done.stdout + done.stderr
        return done.stdout + done.stderr


def _cluster(stack: LocalStack, **changes: Any) -> dict[str, Any]:
    [cluster] = stack.configuration("hostedClusters")
    kept = {name: value for name, value in cluster.items() if name not in ("issuerURL", "kms")}
    identities = {name: value for name, value in cluster["identities"].items() if name != "kms"}
    return {
        **kept,
        "identities": identities,
        "issuer": "create",
        "issuerName": "hc1created",
        "hostedCluster": _GIVEN,
        **changes,
    }


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issued]:
    with small_stack(tmp_path_factory.mktemp("issuer"), "hypershift") as stack:
        with stack.kubernetes("administrator") as http:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}}
            http.post("/api/v1/namespaces", json=namespace).raise_for_status()
        stack.configure(hostedClusters=[_cluster(stack)])
        first = stack.up_with_steps()
        yield Issued(stack, first, stack.preview())


def test_an_issuer_is_made_with_its_key_before_the_hosted_cluster(issued: Issued) -> None:
    assert {name for name, step in issued.first.items() if step == "create"} >= MADE
    assert issued.again == {}
    order = [resource["urn"].rpartition("::")[2] for resource in issued.stack.resources()]
    before = ["hc1-issuer-key-1", "hc1-issuer-documents", "hc1-signing-key-secret", "hc1-hosted-cluster-object"]
    assert sorted(before, key=order.index) == before
    before = ["hc1-encryption-key", "hc1-encryption-key-secret", "hc1-hosted-cluster-object"]
    assert sorted(before, key=order.index) == before


def test_etcd_is_encrypted_with_a_key_of_the_vault(issued: Issued) -> None:
    spec = issued.stack.resource("hc1-hosted-cluster-object")["inputs"]["spec"]
    with issued.stack.kubernetes("administrator") as http:
        found = http.get(ETCD_SECRET).raise_for_status().json()["data"]

    assert spec["secretEncryption"] == {"type": "aescbc", "aescbc": {"activeKey": {"name": "hc1-etcd-encryption-key"}}}
    [key] = [key for name, key in vault_keys(issued.stack).items() if "etcd-encryption-key" in name]
    assert base64.b64decode(found["key"]) == key


def test_anybody_reads_documents_that_name_the_key_of_the_secret(issued: Issued) -> None:
    discovery = issued.document("/.well-known/openid-configuration")

    assert discovery.headers["content-type"] == "application/json"
    assert (discovery.json()["issuer"], discovery.json()["jwks_uri"]) == (ISSUER, f"{ISSUER}/openid/v1/jwks")
    assert public_half(issued.secret["key"]).key_id in issued.published
    assert issued.secret["key"].startswith("-----BEGIN RSA PRIVATE KEY-----"), "HyperShift reads PKCS#1 only"


@pytest.mark.parametrize(("row", "subject"), SUBJECTS, ids=[subject for _, subject in SUBJECTS])
def test_a_service_accounts_token_opens_what_its_role_grants(
    issued: Issued, row: DataPlaneIdentity, subject: str
) -> None:
    guest = issued.guest
    answer = guest.exchange(issued.client_id(row), guest.token(subject))

    assert answer.error == 0
    assert guest.call(proof_of(row), answer.token) == 200


def test_a_token_of_another_key_is_refused(issued: Issued) -> None:
    row, subject = SUBJECTS[0]
    stranger = GuestCluster(issued.stack, ISSUER, make(2048))
    forged = stranger.token(subject, key_id=public_half(issued.secret["key"]).key_id)

    assert stranger.exchange(issued.client_id(row), stranger.token(subject)).error == 7000272
    assert stranger.exchange(issued.client_id(row), forged).error == 50013


def test_a_subject_is_one_identitys_alone(issued: Issued) -> None:
    guest = issued.guest
    (first, subject), (other, _) = SUBJECTS[0], SUBJECTS[-1]

    assert guest.exchange(issued.client_id(other), guest.token(subject)).error == 700213
    assert guest.exchange(issued.client_id(first), guest.token(subject)).error == 0


def test_a_key_is_published_before_it_signs_and_kept_after(issued: Issued) -> None:
    row, subject = SUBJECTS[0]
    old, now = issued.guest, datetime.now(UTC)

    issued.rotate([1, 2], 1, now)
    both = issued.published
    assert len(both) == 2
    assert public_half(issued.secret["key"]).key_id == both[0]

    assert "Entra ID may not know it yet" in issued.rotate([1, 2], 2, now + timedelta(hours=23), check=False)
    assert "are still in use" in issued.rotate([2], 2, now + timedelta(hours=25), check=False)
    assert (issued.published, public_half(issued.secret["key"]).key_id) == (both, both[0]), "nothing was changed"

    issued.rotate([1, 2], 2, now + timedelta(hours=25))
    assert public_half(issued.secret["key"]).key_id == both[1]
    assert issued.secret["old-key.pub"].startswith("-----BEGIN PUBLIC KEY-----")
    assert old.exchange(issued.client_id(row), old.token(subject)).error == 0
    assert issued.guest.exchange(issued.client_id(row), issued.guest.token(subject)).error == 0

    issued.rotate([2], 2, now + timedelta(hours=50))
    assert issued.published == both[1:]
    assert "old-key.pub" not in issued.secret
    assert old.exchange(issued.client_id(row), old.token(subject)).error == 7000272


def test_what_was_changed_behind_the_stack_is_repaired(issued: Issued) -> None:
    before = issued.published
    with issued.stack.configured(hostedClusters=[_cluster(issued.stack, serviceAccountSigningKey=_SECOND)]):
        with issued.stack.kubernetes("administrator") as http:
            patch = {"data": {"key": base64.b64encode(make(2048).encode()).decode()}}
            kind = {"Content-Type": "application/merge-patch+json"}
            http.patch(SECRET, content=json.dumps(patch), headers=kind).raise_for_status()
        issued.stack.up("--refresh")

        assert public_half(issued.secret["key"]).key_id == before[0]
        assert issued.published == before
        assert issued.stack.preview() == {}


def test_account_and_container_that_exist_are_adopted_by_the_printed_commands(issued: Issued) -> None:
    stack, kinds = issued.stack, {resource_types.STORAGE_ACCOUNT, resource_types.STORAGE_CONTAINER}
    with stack.configured(hostedClusters=[_cluster(stack, serviceAccountSigningKey=_SECOND)]):
        lost = {resource["urn"] for resource in stack.resources() if resource["type"] in kinds}
        stack.forget(lost)

        stack.adopt()

        assert lost <= {resource["urn"] for resource in stack.resources()}
        assert stack.preview() == {}


def test_a_key_of_the_cluster_is_in_the_vault_and_its_secret_alone(issued: Issued) -> None:
    stack = issued.stack
    own = ("sa-signing-key", "etcd-encryption-key")
    keys = {name: key for name, key in vault_keys(stack).items() if any(suffix in name for suffix in own)}
    assert len(keys) == 3, "two signing keys, of which one is deleted, and the key of etcd"
    issued.printed["export"] = stack.pulumi("stack", "export", "--show-secrets").stdout
    places = KeySearch(keys).places_in(everything(stack, issued.printed))

    # The local cloud's own store: there the Kubernetes API keeps its Secrets, as etcd does.
    assert {place for place in places if not place.startswith(".localcloud/state.sqlite")} == set()


def test_an_issuer_goes_with_its_cluster_and_the_vault_keeps_deleted_keys(issued: Issued) -> None:
    stack = issued.stack
    with stack.configured(hostedClusters=[]):
        stack.up()

    assert issued.document("/openid/v1/jwks").status_code == 404
    left = {key for kind, key in stack.inventory() if kind in ("arm", "blob", "kubernetes") and "hc1created" in key}
    assert left == set()
    assert any("sa-signing-key-2" in name for name in vault_keys(stack))
