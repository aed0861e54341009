"""`idstack doctor`: finds the first broken stage between the configuration and the proof call, and its fix.

`ops/world` reads a stack into one `StackWorld`, with the role Reader. `checks` use that world
alone, `examination.py` has them in the order of their stages, `checks/check.py` finds the first broken one.
"""
