"""Azure and Entra ID: vault, identities and their roles, the management cluster and the way to it."""
