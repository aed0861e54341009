"""Serve the emulated azuread to the engine."""

from __future__ import annotations

from localcloud.providers.azuread.provider import AzureAd
from plugin import serve

serve(AzureAd())
