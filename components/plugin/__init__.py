"""The resources of the project's own provider plugin, as a program registers them."""
