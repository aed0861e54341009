"""Adoption of what HyperShift's scripts created for a running hosted cluster (`docs/guides/migration.md`)."""
