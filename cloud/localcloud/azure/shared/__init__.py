"""The common part of every service: its HTTP application, its delays and its faults."""
