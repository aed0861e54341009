"""What must fit together in the configuration, and what a change of it must keep."""
