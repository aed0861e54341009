"""The checks: a file for each stage, with its `CHECKS`. They use the `StackWorld` alone."""
