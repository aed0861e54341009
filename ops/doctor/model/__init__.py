"""A check and its results, and look-ups and fixes that several checks use."""
