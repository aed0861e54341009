"""Entra ID: the directory, its replicas, token issue, and the sign-in endpoints at the root of the authority."""
