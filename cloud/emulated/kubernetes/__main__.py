"""Serve the emulated kubernetes provider to the engine."""

from __future__ import annotations

from emulated.kubernetes.provider import Kubernetes
from plugin import serve

serve(Kubernetes())
