"""Faults that a test holds: refusals, delays, lag between replicas, a full disk (README.md, Faults)."""

from localcloud.azure.shared.faults import NO_DELAYS, Faults
from localcloud.azure.shared.held import (
    Disk,
    FaultHolder,
    HeldAnswer,
    HeldDelivery,
    HeldFaults,
    HeldLag,
    HeldReplication,
    Lock,
)

__all__ = [
    "NO_DELAYS",
    "Disk",
    "FaultHolder",
    "Faults",
    "HeldAnswer",
    "HeldDelivery",
    "HeldFaults",
    "HeldLag",
    "HeldReplication",
    "Lock",
]
