"""One file for each subcommand of `idstack`, and the options that they share.

A command raises CommandError for what a person has to fix; `idstack` then exits with code 1.
"""
