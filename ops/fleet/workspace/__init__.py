"""The image in which the Pulumi Kubernetes Operator runs a stack of a fleet (docs/guides/fleet.md)."""
