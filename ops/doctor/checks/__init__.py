"""The checks, by what they look at; each file has its `CHECKS`. They use the `StackWorld` alone."""
