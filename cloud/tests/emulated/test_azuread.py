"""azuread against the running local cloud: what the real provider does with Microsoft Graph."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from emulated.azuread.graph import GraphClient
from emulated.azuread.provider import AzureAd
from localcloud.azure.shared.held import HeldFaults, HeldLag
from localcloud.core import clock
from localcloud.core.clouds import LocalEnvironment
from localcloud.core.state_directory import StateDirectory
from localcloud.testing.certificates import issue
from localcloud.testing.plugins import changes, checked, create, delete, import_by_id, read, refresh, update, urn
from plugin import UNKNOWN, Created, PluginError, PropertyChange, Props, Secret

APPLICATION = "azuread:index/application:Application"
PRINCIPAL = "azuread:index/servicePrincipal:ServicePrincipal"
_UUID = "99999999-8888-4777-8666-555555555555"
CERTIFICATE = "azuread:index/applicationCertificate:ApplicationCertificate"

Unique = Callable[[str], str]


@pytest.fixture(scope="module")
def certificate() -> str:
    """A certificate, PEM."""
    return issue().certificate_pem


@pytest.fixture(scope="module")
def me(azuread: AzureAd) -> str:
    """Object id of the deployer."""
    found: str = azuread.invoke("azuread:index/getClientConfig:getClientConfig", {})["objectId"]
    return found


@pytest.fixture
def application(azuread: AzureAd, me: str, unique: Unique) -> tuple[Props, Created]:
    """An application of the deployer's."""
    return create(azuread, APPLICATION, {"displayName": unique("app"), "owners": [me], "tags": ["idstack"]})


@pytest.fixture
def app(application: tuple[Props, Created]) -> Created:
    """The same, without its inputs."""
    return application[1]


def _graph(azuread: AzureAd) -> GraphClient:
    return azuread._open_session().graph


def _key_ids(azuread: AzureAd, application: Created) -> list[str]:
    return [key_credential["keyId"] for key_credential in _graph(azuread).get(application.id)["keyCredentials"]]


def _registration(application: Created, value: str, **more: str) -> Props:
    return {"applicationId": application.id, "type": "AsymmetricX509Cert", "value": Secret(value), **more}


def test_ids_are_those_of_the_real_provider(azuread: AzureAd, me: str, app: Created, certificate: str) -> None:
    assert app.id == f"/applications/{app.state['objectId']}"
    _, principal = create(azuread, PRINCIPAL, {"clientId": app.state["clientId"], "owners": [me]})
    assert principal.id == f"/servicePrincipals/{principal.state['objectId']}"
    for resource in (app, principal):
        assert (resource.state["appRoleIds"], resource.state["oauth2PermissionScopeIds"]) == ({}, {}), (
            "as the real one has them"
        )
    _, registered = create(azuread, CERTIFICATE, _registration(app, certificate))
    assert registered.id == f"{app.state['objectId']}/certificate/{registered.state['keyId']}"


def test_a_certificate_keeps_the_key_id_that_it_is_given(azuread: AzureAd, app: Created, certificate: str) -> None:
    key_id = str(uuid.uuid5(uuid.NAMESPACE_OID, certificate))
    wanted = _registration(app, certificate, keyId=key_id)
    planned = azuread.resource(CERTIFICATE).create(urn(CERTIFICATE), wanted, preview=True)
    _, registered = create(azuread, CERTIFICATE, wanted)

    assert planned.state["keyId"] == registered.state["keyId"] == key_id
    assert _key_ids(azuread, app) == [key_id]


def test_a_certificate_that_is_there_already_must_be_imported(azuread: AzureAd, app: Created, certificate: str) -> None:
    key_id = str(uuid.uuid4())
    create(azuread, CERTIFICATE, _registration(app, certificate, keyId=key_id))

    with pytest.raises(PluginError, match=f"(?i)/certificate/{key_id}. already exists.*needs to be imported"):
        create(azuread, CERTIFICATE, _registration(app, certificate, keyId=key_id.upper()))
    assert len(_key_ids(azuread, app)) == 1
    (reason,) = azuread.resource(CERTIFICATE).check(urn(CERTIFICATE), None, _registration(app, "x", keyId="1")).failures
    assert reason.reason == "expected 'keyId' to be a valid UUID"


def test_a_refresh_right_after_a_create_changes_nothing(azuread: AzureAd, application: tuple[Props, Created]) -> None:
    inputs, created = application
    refreshed = refresh(azuread, APPLICATION, inputs, created)
    assert (refreshed.inputs, refreshed.state) == (inputs, created.state)
    assert created.state["displayName"] == inputs["displayName"], "the name of the replication test is gone"
    assert not changes(azuread, APPLICATION, inputs, created, inputs)


def test_graph_creates_duplicates_unless_they_are_prevented(azuread: AzureAd, me: str, unique: Unique) -> None:
    inputs: Props = {"displayName": unique("twin"), "owners": [me]}
    _, first = create(azuread, APPLICATION, inputs)
    _, second = create(azuread, APPLICATION, inputs)
    assert first.id != second.id
    careful = checked(azuread, APPLICATION, {**inputs, "preventDuplicateNames": True})
    with pytest.raises(PluginError, match="`prevent_duplicate_names` was specified"):
        azuread.resource(APPLICATION).create(urn(APPLICATION), careful, preview=False)


def test_a_creator_that_is_not_a_listed_owner_is_removed(azuread: AzureAd, unique: Unique) -> None:
    inputs, created = create(azuread, APPLICATION, {"displayName": unique("app")})
    assert created.state["owners"] == []
    with pytest.raises(PluginError, match=r"Could not update .*unexpected status 403 .*Authorization_RequestDenied"):
        update(azuread, APPLICATION, inputs, created, {**inputs, "notes": "x"})


def test_drift_is_detected_and_corrected(azuread: AzureAd, application: tuple[Props, Created]) -> None:
    inputs, created = application
    _graph(azuread).patch(created.id, {"displayName": "by hand", "notes": "by hand", "tags": ["x"]})
    refreshed = refresh(azuread, APPLICATION, inputs, created)
    assert refreshed.inputs == {**inputs, "displayName": "by hand", "tags": ["x"]}
    assert changes(azuread, APPLICATION, refreshed.inputs, refreshed, inputs) == {
        "displayName": PropertyChange("update", input=False),
        "tags": PropertyChange("update", input=False),
        "notes": PropertyChange("delete", input=False),
    }
    assert update(azuread, APPLICATION, refreshed.inputs, refreshed, inputs) == created.state


def test_the_order_of_a_set_is_not_a_difference(azuread: AzureAd) -> None:
    state = {"displayName": "a", "tags": ["x", "y"], "signInAudience": "AzureADMyOrg"}
    resource = azuread.resource(APPLICATION)
    assert not resource.diff(urn(APPLICATION), "id", {}, state, {"displayName": "a", "tags": ["y", "x"]}).changes
    assert not resource.diff(urn(APPLICATION), "id", {}, state, {"displayName": "a"}).changes, "tags are computed"


def test_every_change_of_a_certificate_replaces_it(azuread: AzureAd) -> None:
    state = {
        "applicationId": "/applications/a",
        "encoding": "pem",
        "type": "AsymmetricX509Cert",
        "value": Secret("old"),
        "keyId": "k",
        "startDate": "2026-01-01T00:00:00Z",
        "endDate": "2026-02-01T00:00:00Z",
    }
    resource = azuread.resource(CERTIFICATE)
    assert not resource.diff(urn(CERTIFICATE), "id", state, state, dict(state)).changes
    for name in state:
        for value in ("changed", UNKNOWN):
            diff = resource.diff(urn(CERTIFICATE), "id", state, state, {**state, name: value})
            assert diff.changes == {name: PropertyChange("update", replace=True, input=False)}


def test_certificates_of_one_application_do_not_overwrite_each_other(
    azuread: AzureAd, app: Created, certificate: str
) -> None:
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda _: create(azuread, CERTIFICATE, _registration(app, certificate)), range(4)))
    assert set(_key_ids(azuread, app)) == {created.state["keyId"] for _, created in made}
    delete(azuread, CERTIFICATE, *made[0])
    assert read(azuread, CERTIFICATE, *made[0]) is None
    assert read(azuread, CERTIFICATE, *made[1]) is not None


@pytest.mark.parametrize("encoding", ["pem", "base64", "hex"])
def test_a_certificate_is_registered_in_any_encoding(
    azuread: AzureAd, app: Created, certificate: str, encoding: str
) -> None:
    der = x509.load_pem_x509_certificate(certificate.encode()).public_bytes(Encoding.DER)
    base64_text = "".join(certificate.splitlines()[1:-1])
    value = {"pem": certificate, "base64": base64_text, "hex": der.hex()}[encoding]
    inputs, created = create(azuread, CERTIFICATE, _registration(app, value, encoding=encoding))
    assert created.state["value"] == Secret(value), "secret in the state"
    refreshed = refresh(azuread, CERTIFICATE, inputs, created)
    assert refreshed.state == created.state


def test_an_invalid_certificate_is_refused_without_showing_it(azuread: AzureAd, app: Created) -> None:
    inputs = checked(azuread, CERTIFICATE, _registration(app, "zz-marker", encoding="hex"))
    with pytest.raises(PluginError) as refused:
        azuread.resource(CERTIFICATE).create(urn(CERTIFICATE), inputs, preview=False)
    assert "failed to decode hex certificate data" in str(refused.value)
    assert "marker" not in str(refused.value)


def test_reading_or_deleting_a_certificate_needs_its_application(
    azuread: AzureAd, application: tuple[Props, Created], certificate: str
) -> None:
    registered = create(azuread, CERTIFICATE, _registration(application[1], certificate))
    delete(azuread, APPLICATION, *application)
    assert read(azuread, APPLICATION, *application) is None
    with pytest.raises(PluginError, match=r'Retrieving Application \(Application: ".*Request_ResourceNotFound'):
        read(azuread, CERTIFICATE, *registered)
    with pytest.raises(PluginError, match="Retrieving Application"):
        delete(azuread, CERTIFICATE, *registered)


def test_a_second_service_principal_is_refused_or_adopted_on_request(azuread: AzureAd, me: str, app: Created) -> None:
    inputs: Props = {"clientId": app.state["clientId"], "owners": [me]}
    _, first = create(azuread, PRINCIPAL, inputs)
    with pytest.raises(PluginError, match=f'A resource with the ID "{first.state["objectId"]}" already exists'):
        azuread.resource(PRINCIPAL).create(urn(PRINCIPAL), inputs, preview=False)
    _, taken = create(azuread, PRINCIPAL, {**inputs, "useExisting": True})
    assert taken.id == first.id


def test_an_import_rebuilds_the_inputs(azuread: AzureAd, application: tuple[Props, Created]) -> None:
    inputs, created = application
    imported = import_by_id(azuread, APPLICATION, created.id)
    assert imported.inputs == {name: inputs[name] for name in ("displayName", "owners", "tags")}


@pytest.mark.parametrize(
    ("type_", "given", "defaults"),
    [
        (APPLICATION, {"displayName": "a"}, {"signInAudience": "AzureADMyOrg"}),
        (APPLICATION, {"displayName": "a", "signInAudience": "AzureADMultipleOrgs"}, {}),
        (PRINCIPAL, {"clientId": _UUID}, {"accountEnabled": True}),
        (PRINCIPAL, {"clientId": _UUID, "accountEnabled": False}, {}),
        (CERTIFICATE, {"applicationId": f"/applications/{_UUID}", "value": "v"}, {"encoding": "pem"}),
    ],
)
def test_check_fills_in_the_defaults_and_names_them(
    azuread: AzureAd, type_: str, given: Props, defaults: Props
) -> None:
    """Seen of the real plugin; none that is false or empty, such as `useExisting`."""
    assert checked(azuread, type_, given) == {**given, **defaults, "__defaults": sorted(defaults)}


def test_inputs_of_a_state_may_come_back_to_check(azuread: AzureAd) -> None:
    from_a_state = checked(azuread, APPLICATION, {"displayName": "a"})

    assert checked(azuread, APPLICATION, from_a_state) == {**from_a_state, "__defaults": []}


def test_a_default_that_was_changed_by_hand_is_none_any_more(
    azuread: AzureAd, application: tuple[Props, Created]
) -> None:
    inputs, created = application
    assert inputs["__defaults"] == ["signInAudience"]
    unchanged = refresh(azuread, APPLICATION, inputs, created)
    _graph(azuread).patch(created.id, {"signInAudience": "AzureADMultipleOrgs"})
    changed = refresh(azuread, APPLICATION, inputs, created)

    assert unchanged.inputs["__defaults"] == ["signInAudience"]
    assert changed.inputs["__defaults"] == []
    assert changed.inputs["signInAudience"] == "AzureADMultipleOrgs"


def test_an_import_with_a_wrong_id_names_the_expected_form(azuread: AzureAd) -> None:
    with pytest.raises(PluginError, match="/applications/<object id>"):
        azuread.resource(APPLICATION).read(urn(APPLICATION), "0" * 8, {}, {})
    with pytest.raises(PluginError, match="<object id>/certificate/<key id>"):
        azuread.resource(CERTIFICATE).read(urn(CERTIFICATE), "a/b", {}, {})


def test_a_preview_knows_defaults_and_leaves_the_rest_to_the_service(azuread: AzureAd) -> None:
    state = azuread.resource(APPLICATION).create(urn(APPLICATION), {"displayName": "a"}, preview=True).state
    assert (state["displayName"], state["signInAudience"]) == ("a", "AzureADMyOrg")
    assert state["clientId"] is state["tags"] is UNKNOWN
    kept = azuread.resource(APPLICATION).update(
        urn(APPLICATION), "id", {}, {"clientId": "c", "tags": ["t"]}, {"displayName": "b"}, preview=True
    )
    assert (kept["clientId"], kept["tags"]) == ("c", ["t"])


def test_check_refuses_what_the_provider_or_the_emulation_does_not_have(azuread: AzureAd) -> None:
    def reasons(token: str, inputs: Props) -> list[str]:
        return [failure.reason for failure in azuread.resource(token).check(urn(token), None, inputs).failures]

    assert reasons(PRINCIPAL, {}) == ["missing required property 'clientId'"]
    assert reasons(PRINCIPAL, {"clientId": "no uuid"}) == ["expected 'clientId' to be a valid UUID"]
    assert reasons(CERTIFICATE, {"applicationId": "0", "value": Secret("x"), "encoding": "der"}) == [
        "expected 'applicationId' to be the resource id of an application, /applications/<object id>",
        "expected 'encoding' to be one of base64, hex, pem",
    ]
    (reason,) = reasons(APPLICATION, {"displayName": "a", "logoImage": "x"})
    assert reason.startswith("the emulated azuread plugin does not have 'logoImage'; it has displayName,")


def test_data_sources_find_exactly_one(azuread: AzureAd, app: Created) -> None:
    token = "azuread:index/getApplication:getApplication"
    found = azuread.invoke(token, {"clientId": app.state["clientId"]})
    assert (found["id"], found["displayName"]) == (app.id, app.state["displayName"])
    with pytest.raises(PluginError, match="No application found with displayName: nobody"):
        azuread.invoke(token, {"displayName": "nobody"})


@pytest.fixture
def late(environment: LocalEnvironment) -> Iterator[Callable[..., None]]:
    """Lets reads of applications be answered as before `since`: so many, after the first `skip`."""
    file = StateDirectory(Path(environment.state_dir)).held_faults_file

    def hold(since: datetime, *, skip: int, count: int) -> None:
        lag = HeldLag("graph", ("GET",), "/applications/", since=since, skip=skip, count=count)
        file.write_text(HeldFaults(lags=(lag,)).to_json())

    yield hold
    file.unlink(missing_ok=True)


def test_late_reads_after_a_write_are_waited_for(
    azuread: AzureAd, app: Created, certificate: str, late: Callable[..., None]
) -> None:
    late(clock.now(), skip=1, count=7)
    inputs, first = create(azuread, CERTIFICATE, _registration(app, certificate))
    _, second = create(azuread, CERTIFICATE, _registration(app, certificate))
    late(clock.now(), skip=1, count=7)
    delete(azuread, CERTIFICATE, inputs, first)

    assert _key_ids(azuread, app) == [second.state["keyId"]]


def test_a_late_read_before_a_write_loses_what_came_after_it(
    azuread: AzureAd, app: Created, certificate: str, late: Callable[..., None]
) -> None:
    before = clock.now()
    create(azuread, CERTIFICATE, _registration(app, certificate))
    late(before, skip=0, count=1)
    _, second = create(azuread, CERTIFICATE, _registration(app, certificate))

    assert _key_ids(azuread, app) == [second.state["keyId"]], "as the real one reads once"
