"""The keys of the configuration: their types, defaults and descriptions."""
