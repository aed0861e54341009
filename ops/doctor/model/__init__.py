"""What a check is, and what several checks ask of a stack."""
