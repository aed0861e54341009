"""Emulated provider plugins: they serve the engine as the real ones do, and send their requests to the local cloud."""
