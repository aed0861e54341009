"""Clients of Azure and the management cluster, with the sign-in of the stack's deployer."""
