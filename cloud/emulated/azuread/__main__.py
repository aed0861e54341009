"""Serve the emulated azuread to the engine."""

from __future__ import annotations

from emulated.azuread.provider import AzureAd
from plugin import serve

serve(AzureAd())
