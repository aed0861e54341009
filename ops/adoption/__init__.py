"""Adoption of what HyperShift's scripts made for a hosted cluster that runs (`docs/guides/migration.md`)."""
