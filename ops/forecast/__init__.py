"""How much of Azure's limits the stacks use, from their configuration alone."""
