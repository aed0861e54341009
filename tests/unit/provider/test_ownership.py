"""A secret is written if it carries this stack's owner id, that of the stack it came from, or none; else never."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from identity.azure.records import SecretMetadata
from identity.credentials.secret_tags import OWNER
from plugin import PluginError, Props
from provider.vault_secrets import OWNER_ID, kept_owner, refuse_foreign

URN = "urn:pulumi:dev::idstack::idstack:index:CredentialSecret::secret"
OWNERS = st.sampled_from([None, "ours", "before", "theirs"])


def secret(owner: str | None) -> SecretMetadata:
    tags = {} if owner is None else {OWNER: owner}
    created = datetime(2026, 1, 31, tzinfo=UTC)
    return SecretMetadata(
        id="/id",
        version="v",
        uri="https://uri",
        enabled=True,
        created=created,
        not_before=None,
        expires=None,
        tags=tags,
    )


def inputs(owner: str | None) -> Props:
    return {} if owner is None else {OWNER_ID: owner}


def is_refused(found: SecretMetadata | None, *known: Props) -> bool:
    try:
        refuse_foreign(URN, found, *known)
    except PluginError:
        return True
    return False


@given(found=OWNERS, new=OWNERS, old=OWNERS)
def test_only_a_known_owner_id_is_overwritten(found: str | None, new: str | None, old: str | None) -> None:
    assert is_refused(secret(found), inputs(new), inputs(old)) == (found not in (None, new, old))
    assert is_refused(secret(found), inputs(new)) == (found not in (None, new))
    assert not is_refused(None, inputs(new))


@given(new=OWNERS, old=OWNERS)
def test_what_a_run_does_not_know_stays(new: str | None, old: str | None) -> None:
    assert kept_owner(inputs(old), inputs(new)).get(OWNER_ID) == (new if new is not None else old)
    assert kept_owner(None, inputs(new)) == inputs(new)
