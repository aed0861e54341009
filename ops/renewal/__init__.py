"""Renewals of certificates: of which identities, and by runs of the engine that do nothing else."""
