"""The type of a check, and look-ups and fixes that several checks use."""
