"""A preview by the identity of `docs/guides/pull-requests.md`: it sees what the deployer sees, and changes nothing."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.reader import Reader, reader_of, resource_groups
from tests.harness import LocalStack


@pytest.fixture(scope="module")
def reader(small: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader of the small stack, which writes to its management cluster."""
    with reader_of(small, tmp_path_factory.mktemp("reader"), cluster_user=True) as made:
        yield made


def test_the_resource_groups_are_those_of_the_configuration(small: LocalStack) -> None:
    names = [resource_group.rpartition("/")[2] for resource_group in resource_groups(small)]

    assert names == ["aks-local", "dns-local", "hc1-managed", "hc1-network", "hc1-nsg", "identity-local"]


def test_a_reader_previews_an_up_to_date_stack_without_a_change(small: LocalStack, reader: Reader) -> None:
    before = _files(small)

    assert reader.preview("--expect-no-changes") == {}
    assert _files(small) == before, "a preview writes nothing"


def test_a_reader_previews_a_change_as_the_deployer_does(small: LocalStack, reader: Reader) -> None:
    with small.configured(tags={"environment": "changed"}):
        planned = reader.preview()

        assert planned == small.preview()
    assert planned["vault-vault"] == "update"


@pytest.mark.slow
def test_the_role_reader_is_enough_without_the_cluster_side(small: LocalStack, tmp_path: Path) -> None:
    with reader_of(small, tmp_path) as reader:
        with pytest.raises(AssertionError, match="Azure Kubernetes Service Cluster User Role"):
            reader.preview()
        with small.configured(clusterSide="hypershift"):
            assert reader.preview() == small.preview()


def test_a_reader_cannot_bring_the_change_up(small: LocalStack, reader: Reader) -> None:
    before = small.contents()
    with small.configured(tags={"environment": "changed"}), pytest.raises(AssertionError, match="AuthorizationFailed"):
        reader.pulumi("up", "--yes", "--skip-preview", "--target", small.resource("vault-vault")["urn"])
    assert small.contents() == before


def test_a_reader_sees_a_secrets_dates_and_nothing_of_its_value(small: LocalStack, reader: Reader) -> None:
    answer = reader.arm("GET", _secret(small))

    assert answer.status_code == 200
    assert answer.json()["properties"].keys() <= {"attributes", "contentType", "secretUri", "secretUriWithVersion"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/secrets", None),
        ("GET", "/secrets/{name}", None),
        ("GET", "/secrets/{name}/versions", None),
        ("GET", "/secrets/{name}/{version}", None),
        ("PUT", "/secrets/{name}", {"value": "v"}),
        ("PATCH", "/secrets/{name}/{version}", {"attributes": {"enabled": True}}),
        ("DELETE", "/secrets/{name}", None),
        ("GET", "/deletedsecrets", None),
        ("GET", "/keys", None),
    ],
)
def test_the_vault_is_closed_to_a_reader(
    small: LocalStack, reader: Reader, method: str, path: str, body: dict[str, object] | None
) -> None:
    uri = reader.arm("GET", _secret(small)).json()["properties"]["secretUriWithVersion"]
    name, version = uri.split("/")[-2:]
    answer = reader.vault(method, path.format(name=name, version=version), body)

    assert (answer.status_code, answer.json()["error"]["innererror"]["code"]) == (403, "ForbiddenByRbac")


@pytest.mark.parametrize(
    ("method", "of", "verb", "body"),
    [
        ("PUT", "secret", "", {"properties": {"value": "v"}}),
        ("PATCH", "secret", "", {"tags": {}}),
        ("PATCH", "vault-vault", "", {"properties": {"enableRbacAuthorization": True}}),
        ("DELETE", "vault-vault", "", None),
        ("POST", "cluster", "/listClusterAdminCredential", None),
        ("PUT", "group", "/providers/Microsoft.Authorization/roleAssignments/{uuid}", {}),
    ],
)
def test_arm_lets_a_reader_change_nothing_and_list_no_key(
    small: LocalStack, reader: Reader, method: str, of: str, verb: str, body: dict[str, object] | None
) -> None:
    vault = small.resource("vault-vault")["id"]
    group = vault.partition("/providers/")[0]
    aks = group.replace("identity-local", "aks-local") + "/providers/Microsoft.ContainerService/managedClusters"
    scope = {"secret": _secret(small), "vault-vault": vault, "cluster": f"{aks}/aks-mgmt-local", "group": group}[of]
    answer = reader.arm(method, scope + verb.format(uuid=uuid.uuid4()), body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "AuthorizationFailed")


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_graph_is_closed_to_a_reader(small: LocalStack, reader: Reader, method: str) -> None:
    application = small.resource("hc1-cloud-provider-entra-application")["id"]
    answer = reader.graph(method, application, {"keyCredentials": []} if method == "PATCH" else None)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "Authorization_RequestDenied")
    assert reader.graph("POST", "/applications", {"displayName": "x"}).status_code == 403


def _secret(stack: LocalStack) -> str:
    found: str = stack.resource("hc1-cloud-provider-credential-secret")["id"]
    return found


def _files(stack: LocalStack) -> dict[str, str]:
    """What the engine's backend holds, without the record of who is at work."""
    backend = Path(stack.state, "pulumi/backend")
    return {
        str(path.relative_to(backend)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in backend.rglob("*")
        if path.is_file()
    }
