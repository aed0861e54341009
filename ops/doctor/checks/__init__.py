"""The checks: a file for each stage, with its `CHECKS`. They look at the world that was read, and change nothing."""
