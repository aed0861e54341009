"""What every part of the local cloud uses: its store, state directory, clock, processes, TLS and HTTP server.

Nothing here imports another part of the local cloud.
"""
