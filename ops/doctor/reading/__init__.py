"""Gathers what the checks look at. Every reader asks for metadata alone, and changes nothing."""
