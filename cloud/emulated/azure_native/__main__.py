"""Serve the emulated azure-native to the engine."""

from __future__ import annotations

from emulated.azure_native.provider import AzureNative
from plugin import serve

serve(AzureNative())
