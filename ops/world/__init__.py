"""Reads a stack: its state, and its resources in Azure and on the management cluster."""
