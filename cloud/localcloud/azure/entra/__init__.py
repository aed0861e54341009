"""Entra ID's sign-in: replicas, client assertions, federation, sessions, and the endpoints of the authority."""
