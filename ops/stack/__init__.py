"""One stack: the environment of its commands, the engine, its lock, and the local cloud of a local stack."""
