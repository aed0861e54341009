"""`IssuerDocumentsResource` against local storage: what anybody reads, when keys change, and what a refresh sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from identity.azure.client import AzureClient
from identity.azure.errors import AzureRefusedError
from identity.clouds import LOCAL_TENANT_ID
from identity.credentials.openid_documents import discovery_document, jwks_document
from localcloud.testing.arm import GROUP, ArmWorld, storage_account_body
from localcloud.testing.azure import Blobs
from plugin import PluginError, Props
from provider.issuer_documents import IssuerDocumentsResource
from tests.unit.provider.conftest import SetClock, SignIn

URN = "urn:pulumi:dev::idstack::idstack:index:IssuerDocuments::hc1-issuer-documents"
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/hc1oidc"
ISSUER = "https://hc1oidc.blob.core.windows.net/hc1oidc"
START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST, SECOND = ({"kty": "RSA", "kid": name, "n": name, "e": "AQAB"} for name in ("one", "two"))

resource = IssuerDocumentsResource()


def program(*keys: dict[str, str], signing: int = 1, first: int = 1, leaked: Sequence[int] = ()) -> Props:
    numbered = [{"generation": first + index, "jwk": jwk} for index, jwk in enumerate(keys or (FIRST,))]
    return {
        "cloud": "local",
        "tenantId": LOCAL_TENANT_ID,
        "issuer": ISSUER,
        "keys": numbered,
        "signing": signing,
        "leaked": list(leaked),
    }


def checked(wanted: Props, old: Props | None = None) -> Props:
    found = resource.check(URN, old, wanted)
    assert not found.failures
    return found.inputs


def refusal(wanted: Props, old: Props) -> str:
    [failure] = resource.check(URN, old, wanted).failures
    return failure.reason


@pytest.fixture
def issuer(in_azure: ArmWorld, sign_in: SignIn, set_clock: SetClock) -> ArmWorld:
    """A world with the issuer's account and container; the deployer may write there."""
    set_clock(START)
    assert in_azure.call("PUT", ACCOUNT, storage_account_body()).is_success
    open_to(in_azure, "Container")
    in_azure.grant(in_azure.deployer, "Storage Blob Data Contributor", ACCOUNT)
    return in_azure


def open_to(world: ArmWorld, access: str) -> None:
    """Let anybody read the container, or (`None`) nobody without a role."""
    body = {"properties": {"publicAccess": access}}
    assert world.call("PUT", f"{ACCOUNT}/blobServices/default/containers/hc1oidc", body).is_success


def blob(world: ArmWorld, path: str) -> Any:
    return Blobs(world.store).get(f"hc1oidc/hc1oidc/{path}")


def test_both_documents_are_published(issuer: ArmWorld) -> None:
    resource.create(URN, checked(program()), preview=True)
    assert blob(issuer, "openid/v1/jwks") is None, "a preview writes nothing"

    made = resource.create(URN, checked(program()), preview=False)

    assert made.id == ISSUER
    discovery, jwks = blob(issuer, ".well-known/openid-configuration"), blob(issuer, "openid/v1/jwks")
    assert (discovery.content, jwks.content) == (discovery_document(ISSUER), jwks_document([FIRST]))
    assert (discovery.content_type, jwks.cache_control) == ("application/json", "public, max-age=60")


def test_a_role_that_has_no_effect_yet_is_waited_for(
    issuer: ArmWorld, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    newcomer = issuer.principal()
    sign_in(newcomer)
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        issuer.grant(newcomer, "Storage Blob Data Contributor", ACCOUNT)

    monkeypatch.setattr("provider.issuer_documents.pause", pause)
    resource.create(URN, checked(program()), preview=False)

    assert len(paused) == 1
    assert blob(issuer, "openid/v1/jwks").content == jwks_document([FIRST])


def test_documents_are_published_once_anybody_reads_them_as_entra_id_does(
    issuer: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_to(issuer, "None")
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        open_to(issuer, "Container")

    monkeypatch.setattr("provider.issuer_documents.pause", pause)
    resource.create(URN, checked(program()), preview=False)

    assert len(paused) == 1


def test_without_the_role_it_says_which_one_is_missing(
    issuer: ArmWorld, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(issuer.principal())
    monkeypatch.setattr("provider.issuer_documents._LONGEST_WAIT", 0.0)

    with pytest.raises(PluginError) as refused:
        resource.create(URN, checked(program()), preview=False)
    message = "403 AuthorizationPermissionMismatch. The deployer needs the role Storage Blob Data Contributor"
    assert message in str(refused.value)


def test_since_when_a_key_is_published_and_signs_is_kept(issuer: ArmWorld, set_clock: SetClock) -> None:
    old = checked(program())
    set_clock(START + timedelta(hours=5))
    new = checked(program(FIRST, SECOND), old)

    assert (old["publishedSince"], old["signingSince"]) == ({"1": "2026-01-01T00:00:00Z"}, "2026-01-01T00:00:00Z")
    assert new["publishedSince"] == {"1": "2026-01-01T00:00:00Z", "2": "2026-01-01T05:00:00Z"}
    assert new["signingSince"] == old["signingSince"]
    assert checked(program(leaked=[7]), old) == old, "a leak that is over changes no document"


def test_a_step_before_its_time_is_refused_with_its_moment(issuer: ArmWorld, set_clock: SetClock) -> None:
    old = checked(program(FIRST, SECOND))
    set_clock(START + timedelta(hours=1))

    assert "let it sign after 2026-01-02T00:00:00Z. After a leak, name the key that has leaked in" in refusal(
        program(FIRST, SECOND, signing=2), old
    )
    assert checked(program(SECOND, signing=2, first=2, leaked=[1]), old)["signing"] == 2


@pytest.mark.parametrize("minutes", [-6, 6])
def test_by_a_wrong_clock_nothing_is_published_and_no_day_counted(
    issuer: ArmWorld, monkeypatch: pytest.MonkeyPatch, set_clock: SetClock, minutes: int
) -> None:
    old = checked(program(FIRST, SECOND))
    set_clock(START + timedelta(days=2))
    wrong = datetime.now(UTC) + timedelta(minutes=minutes)
    monkeypatch.setattr("provider.issuer_documents.rfc3339.utc_now", lambda: wrong)

    for wanted, before in ((program(), None), (program(FIRST, SECOND, signing=2), old), (program(FIRST), old)):
        with pytest.raises(
            PluginError, match=r"no key was published or let sign, as this machine's clock is wrong: it shows .*"
        ):
            resource.check(URN, before, wanted)
    assert checked(program(FIRST, SECOND), old) == old, "nothing changes, so nothing is asked"


def test_an_azure_that_does_not_answer_is_named(issuer: ArmWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AzureRefusedError("https://management.azure.com does not answer")

    monkeypatch.setattr(AzureClient, "resource_with_date", refuse)

    with pytest.raises(PluginError, match=r"clock could not be compared with Azure's: .* does not answer"):
        resource.check(URN, None, program())


def test_the_same_keys_with_their_members_in_another_order_are_no_change(issuer: ArmWorld) -> None:
    inputs = checked(program())
    state = resource.create(URN, inputs, preview=False).state
    turned = inputs | {"keys": [{"generation": 1, "jwk": dict(reversed(FIRST.items()))}]}

    seen = resource.read(URN, ISSUER, turned, state)

    assert seen is not None
    assert seen.inputs == turned


def replace_keys(issuer: ArmWorld, content: bytes) -> None:
    """Somebody writes another JWKS."""
    Blobs(issuer.store).put("hc1oidc/hc1oidc/openid/v1/jwks", replace(blob(issuer, "openid/v1/jwks"), content=content))


@pytest.mark.parametrize("content", [b"{}", b"\xff"], ids=["another", "no JSON"])
def test_a_refresh_sees_what_anybody_sees_and_an_update_writes_it_again(
    issuer: ArmWorld, sign_in: SignIn, content: bytes
) -> None:
    inputs = checked(program())
    state = resource.create(URN, inputs, preview=False).state
    sign_in(issuer.principal())
    same = resource.read(URN, ISSUER, inputs, state)
    replace_keys(issuer, content)
    other = resource.read(URN, ISSUER, inputs, state)

    assert same is not None
    assert other is not None
    assert (same.inputs, other.inputs) == (inputs, inputs | {"changed": True})
    assert list(resource.diff(URN, ISSUER, other.inputs, state, inputs).changes) == ["changed"]
    sign_in(issuer.deployer)
    resource.update(URN, ISSUER, other.inputs, state, inputs, preview=False)
    assert blob(issuer, "openid/v1/jwks").content == jwks_document([FIRST])


def test_documents_that_are_gone_are_gone(issuer: ArmWorld) -> None:
    inputs = checked(program())

    assert resource.read(URN, ISSUER, inputs, inputs) is None


def test_another_address_is_another_issuer(issuer: ArmWorld) -> None:
    old = checked(program())
    changes = resource.diff(URN, ISSUER, old, old, {**old, "issuer": "https://other", "signing": 2}).changes

    assert {path: change.replace for path, change in changes.items()} == {"issuer": True, "signing": False}


@pytest.mark.parametrize(
    ("name", "value"), [("keys", []), ("keys", "x"), ("signing", 0), ("leaked", "x"), ("leaked", [0])]
)
def test_a_wrong_input_is_refused(name: str, value: Any) -> None:
    failures = resource.check(URN, None, {**program(), name: value}).failures

    assert [failure.property for failure in failures] == [name]
