"""The table of the errors that a person on call reads.

The doctor, the sign-in to AKS, the rehearsal and `idstack explain` take their words from here, and so does
`docs/reference/symptoms.md`. The probe's image has it, too, so it imports the standard library alone.
"""

from __future__ import annotations

from typing import Final

from identity.credentials import cluster_symptoms, sign_in_symptoms
from identity.credentials.symptom import Family, Symptom

SYMPTOMS: Final[tuple[Symptom, ...]] = (*sign_in_symptoms.ROWS, *cluster_symptoms.ROWS)


def find(text: str, *families: Family) -> Symptom | None:
    """The first row of these families (by default of all) that the text matches."""
    return next((row for row in SYMPTOMS if (not families or row.family in families) and row.is_in(text)), None)
