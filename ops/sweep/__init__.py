"""Finds leftovers in Azure: resources of deleted stacks, clusters and principals."""
