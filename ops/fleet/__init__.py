"""A fleet: one file that describes environments, shared stacks and hosted clusters, and what follows from it."""
