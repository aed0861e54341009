"""The policy pack as the engine starts it."""

from __future__ import annotations

import os

from pulumi_policy import PolicyPack

from policies.pack import policies
from policies.rules import StackConfig

# Serves until the engine ends the process.
PolicyPack("idstack", policies=policies(StackConfig.from_environment(os.environ)))
