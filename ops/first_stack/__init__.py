"""A first stack on Azure: its questions, its file, and what is left to do before the first preview."""
