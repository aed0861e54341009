"""Why a seed cannot be used, in words; apart from the seed's model, whose import takes a fifth of a second."""

from __future__ import annotations


class InvalidSeedError(ValueError):
    """A file that is not a seed; the message names the file and each place in it."""


class SeedConflictError(ValueError):
    """This local cloud has another tenant or subscription than the seed."""


class NotSeededError(RuntimeError):
    """The daemon did not create what the seed has; the message tells its reason."""
