"""What every service of the local Azure answers with: its HTTP application, and the delays and faults it is given."""
