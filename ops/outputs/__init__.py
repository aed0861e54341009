"""What the commands show: a stack's outputs and state, joined with the reports of its credential probes."""
