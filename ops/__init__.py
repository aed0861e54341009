"""The `idstack` command: `make up`, `make preview` and `make down` call it, and so does whoever is on call.

It reaches the local cloud only as a process of its own (`python -m localcloud`) and as a client of its endpoints.
"""
