"""Settles what an interrupted `up` left behind: things that exist, but that the state does not know.

A killed engine leaves creates pending in the state; one whose provider plugin or connection broke forgets them (the
operation failed, whatever became of the request). So nothing is read from the pending operations. What counts is what
a preview would create although it is there: each such thing is looked up by the id that its inputs determine, or by
the mark that the stack put on it, and entered into the state as the engine would have entered it.
"""
