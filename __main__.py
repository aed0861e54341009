"""The identity flow of managed Azure HostedClusters, as a program of its own."""

from __future__ import annotations

import pulumi

from components.program import identity_stack

pulumi.run(identity_stack)
