"""The `idstack` command: what `make up`, `make preview` and `make down` call, and what a person on call asks.

It reaches the local cloud only as a process of its own (`python -m localcloud`) and as a client of its endpoints.
"""
