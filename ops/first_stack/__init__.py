"""A first stack on Azure: its questions, its file, and the remaining steps before the first preview."""
