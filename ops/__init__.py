"""The `idstack` command, for the command line, `make` and pipelines.

It uses the local cloud only as a separate process (`python -m localcloud`) and as a client of its endpoints.
"""
