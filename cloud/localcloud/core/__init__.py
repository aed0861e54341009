"""The base of the local cloud: store, state directory, clock, processes, TLS and HTTP server.

Nothing here imports another part of the local cloud.
"""
