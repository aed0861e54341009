"""The local cloud as a whole: prepares its state directory, starts and stops its processes, serves and seeds it."""
