"""A preview by the identity of `docs/guides/pull-requests.md`: it sees what the deployer sees, and changes nothing."""

from __future__ import annotations

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


def test_the_vault_is_closed_to_a_reader(small: LocalStack, reader: Reader) -> None:
    uri = reader.arm("GET", _secret(small)).json()["properties"]["secretUriWithVersion"]
    name, version = uri.split("/")[-2:]

    for method, path, body in (
        *(("GET", f"/{listed}", None) for listed in ("secrets", "deletedsecrets", "keys", f"secrets/{name}/versions")),
        *(("GET", f"/secrets/{read}", None) for read in (name, f"{name}/{version}")),
        ("PUT", f"/secrets/{name}", {"value": "v"}),
        ("PATCH", f"/secrets/{name}/{version}", {"attributes": {"enabled": True}}),
        ("DELETE", f"/secrets/{name}", None),
    ):
        answer = reader.vault(method, path, body)
        assert (answer.status_code, answer.json()["error"]["innererror"]["code"]) == (403, "ForbiddenByRbac"), path


def test_arm_lets_a_reader_change_nothing_and_list_no_key(small: LocalStack, reader: Reader) -> None:
    vault = small.resource("vault-vault")["id"]
    group = vault.partition("/providers/")[0]
    aks = group.replace("identity-local", "aks-local") + "/providers/Microsoft.ContainerService/managedClusters"

    for method, scope, body in (
        ("PUT", _secret(small), {"properties": {"value": "v"}}),
        ("PATCH", _secret(small), {"tags": {}}),
        ("PATCH", vault, {"properties": {"enableRbacAuthorization": True}}),
        ("DELETE", vault, None),
        ("POST", f"{aks}/aks-mgmt-local/listClusterAdminCredential", None),
        ("PUT", f"{group}/providers/Microsoft.Authorization/roleAssignments/{uuid.uuid4()}", {}),
    ):
        answer = reader.arm(method, scope, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "AuthorizationFailed"), scope


def test_graph_is_closed_to_a_reader(small: LocalStack, reader: Reader) -> None:
    application = small.resource("hc1-cloud-provider-entra-application")["id"]

    for method, body in (("GET", None), ("PATCH", {"keyCredentials": []}), ("DELETE", None)):
        answer = reader.graph(method, application, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "Authorization_RequestDenied"), method
    assert reader.graph("POST", "/applications", {"displayName": "x"}).status_code == 403


def _secret(stack: LocalStack) -> str:
    found: str = stack.resource("hc1-cloud-provider-credential-secret")["id"]
    return found


def _files(stack: LocalStack) -> dict[str, bytes]:
    """What the engine's backend holds, without the record of who is at work."""
    backend = Path(stack.state, "pulumi/backend")
    return {str(path.relative_to(backend)): path.read_bytes() for path in backend.rglob("*") if path.is_file()}
