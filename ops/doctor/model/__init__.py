"""What is seen of a stack, and what a check is."""
