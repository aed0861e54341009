"""One file for each subcommand of `idstack`."""
