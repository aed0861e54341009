"""The checks: one file each, with its `CHECK`. They look at the world that was read, and change nothing."""
