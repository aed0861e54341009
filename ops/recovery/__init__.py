"""Settles what an interrupted `up` left behind: orphans, which exist in the cloud but not in the state.

A killed engine leaves creates pending in the state. One whose provider plugin or connection broke drops them: the
operation failed, whatever became of the request. So the pending operations are not read. What counts is what a preview
would create although it exists: each such thing is looked up by the id that its inputs determine, or by the mark that
the stack put on it, and entered into the state as the engine would have entered it.
"""
