"""One file for each subcommand of `idstack`, and their shared options.

A command raises CommandError for a problem that a person has to fix; `idstack` then exits with code 1.
"""
