"""Which document may be written over the one in the vault."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from identity.credentials.document import StoredBefore

_MOMENT = datetime(2026, 11, 25, tzinfo=UTC)
_SECONDS = st.integers(-3, 3).map(lambda seconds: _MOMENT + timedelta(seconds=seconds))


@given(theirs=st.none() | st.sampled_from("AB"), stored=st.none() | _SECONDS, begins=_SECONDS)
def test_nothing_but_the_same_document_or_a_later_one_is_written(
    theirs: str | None, stored: datetime | None, begins: datetime
) -> None:
    before = StoredBefore("kv", "disk-hc1-json", theirs, stored)

    why = before.why_it_stays("A", begins)

    if stored is None or theirs == "A" or begins > stored:
        assert why is None
    elif begins < stored or theirs == "B":
        assert why is not None
        assert "the one in the secret disk-hc1-json at 2026-11-2" in why
    else:
        assert why is None, "it begins at the same second, and nobody knows another one"
