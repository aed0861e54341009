"""The one exception of `ops`."""

from __future__ import annotations


class Trouble(Exception):
    """Something a person has to mend: what was found and what to do, printed without a trace; exit code 1."""
