"""What the other stacks of a backend have, so that none of it is adopted or deleted."""
