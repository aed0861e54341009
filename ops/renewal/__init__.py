"""Renewals of certificates: the identities, and engine runs that do nothing else."""
