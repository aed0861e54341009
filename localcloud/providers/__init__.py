"""Emulated provider plugins: they speak the engine's protocol as the real ones do, and HTTP to the local cloud."""
