"""The instance metadata service of the cluster's node: tokens for the managed identities attached to it."""
