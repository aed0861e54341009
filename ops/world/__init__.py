"""What there is of a stack: its state, and what Azure and the management cluster show of it."""
