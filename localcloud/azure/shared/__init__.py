"""What every service of the local Azure answers with: its HTTP application, and its delays and faults."""
