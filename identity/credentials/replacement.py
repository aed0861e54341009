"""Whether a document may replace the one in the vault."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from identity.credentials import rfc3339


@dataclass(frozen=True)
class StoredBefore:
    """The document in the secret of that name, in the vault of that name: its thumbprint (tag) and `nbf` (UTC)."""

    vault: str
    secret: str
    thumbprint: str | None
    not_before: datetime | None

    def why_it_stays(self, thumbprint: str, not_before: datetime) -> str | None:
        """Why the document of this certificate must not replace it; None if it may.

        A loader accepts only a later document (msi-dataplane pkg/dataplane/reloadCredentials.go:165-194), so an older
        one would reach only pods that start.
        """
        if self.not_before is None or self.thumbprint == thumbprint or not_before > self.not_before:
            return None
        if not_before == self.not_before and self.thumbprint is None:
            return None
        begins = rfc3339.render(self.not_before)
        return f"it begins at {rfc3339.render(not_before)}, and the one in the secret {self.secret} at {begins}"

    @property
    def ways_out(self) -> str:
        """What helps if the document is older."""
        return (
            "take the document that the secret has, or have a later one issued; if the secret's date is wrong, "
            f"`az keyvault secret set-attributes --vault-name {self.vault} --name {self.secret} --not-before <date>` "
            "corrects it"
        )
