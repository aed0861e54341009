"""What the stacks take of Azure's limits, from their configuration alone."""
