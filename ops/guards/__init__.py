"""What keeps a run from harming another stack, or a control plane that lives."""
