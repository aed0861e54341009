"""`idstack doctor`: finds the first broken stage between the configuration and the proof call, and its fix.

`ops/world` reads a stack into one `StackWorld`, with the role Reader. `checks` has a file for each stage, whose checks
use that world alone. `registry` has them in order, `diagnosis` finds the first broken one.
"""
