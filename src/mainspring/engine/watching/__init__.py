"""Watching: what goes on in the event loop, from a thread beside it.

code_watch (authors' pure code: every call of it goes through here, and one that does not return is ended), loop_watch
(what blocks the loop otherwise, named).
"""
