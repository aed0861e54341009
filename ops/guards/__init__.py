"""Guards that keep a run from harming another stack, or a running control plane."""
