"""`idstack doctor`: what is broken on the way from the configuration to the proof call, and the command that fixes it.

`reading` gathers what can be seen into one `World`, with a Reader's rights. `checks` has one file for each check, which
looks at that world alone. `registry` has them in the order of the stages, `diagnosis` blames the first broken one.
"""
