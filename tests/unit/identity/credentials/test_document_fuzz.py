"""Whatever stands in the file, reading it neither crashes nor accepts what cannot sign in."""

from __future__ import annotations

import base64
import json
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import InvalidCredentialError, decode
from tests.unit.identity.credentials.documents import (
    PFX,
    changed,
    problems,
    with_secret,
)
from tests.unit.identity.credentials.world import document

json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    (
        *("authentication_endpoint", "client_id", "client_secret", "tenant_id", "custom_claims", "object_id"),
        *("not_before", "not_after", "renew_after", "cannot_renew_after", "anything"),
    )
)


def accepted_or_explained(text: str | bytes) -> None:
    """Neither a crash nor a wrong acceptance nor an empty explanation."""
    reported: tuple[str, ...] | None = None
    try:
        read = decode(text)
    except InvalidCredentialError as error:
        reported = error.problems
    if reported is not None:
        assert reported
        assert all("found" in problem for problem in reported)
        return
    assert read.client_id == json.loads(text)["client_id"] != ""
    assert read.authority_host.startswith("https://")
    assert read.certificate.public_key() == read.key_material.private_key.public_key()


class TestAnything:
    """Whatever stands in the file, the reader neither crashes nor accepts what cannot sign in."""

    @given(st.text() | st.binary())
    def test_any_string(self, text: str | bytes) -> None:
        accepted_or_explained(text)

    @given(values=st.dictionaries(names, json_values, max_size=4))
    def test_a_good_document_with_fields_of_any_kind(
        self, issued: IssuedCertificate, values: dict[str, object]
    ) -> None:
        accepted_or_explained(json.dumps({**json.loads(document(issued)), **values}))

    @given(data=st.data())
    def test_a_good_document_cut_or_altered_anywhere(self, issued: IssuedCertificate, data: st.DataObject) -> None:
        good = document(issued).encode()
        place = data.draw(st.integers(0, len(good) - 1))
        accepted_or_explained(good[:place])
        accepted_or_explained(good[:place] + data.draw(st.binary(min_size=1, max_size=3)) + good[place + 1 :])

    @given(data=st.data())
    def test_a_secret_altered_inside_its_base64(self, issued: IssuedCertificate, data: st.DataObject) -> None:
        for bundle in (base64.b64decode(json.loads(document(issued))["client_secret"]), PFX):
            place = data.draw(st.integers(0, len(bundle) - 1))
            altered = bundle[:place] + data.draw(st.binary(max_size=2)) + bundle[place + 1 :]
            accepted_or_explained(with_secret(issued, altered))

    @given(start=st.datetimes(), end=st.datetimes())
    def test_dates_of_any_year(self, issued: IssuedCertificate, start: datetime, end: datetime) -> None:
        text = changed(
            issued,
            not_before=f"{start.isoformat()}-23:59",
            not_after=f"{end.isoformat()}+23:59",
            client_secret=None,
        )
        assert problems(text)
