"""`idstack doctor`: what is broken on the way from the configuration to the proof call, and the command that fixes it.

`reading` gathers what can be seen into one `StackWorld`, with a Reader's rights. `checks` has one file for each stage,
whose checks look at that world alone. `registry` has them in order, `diagnosis` blames the first broken one.
"""
