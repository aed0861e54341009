"""How a command reaches Azure and the management cluster as the stack's deployer."""
