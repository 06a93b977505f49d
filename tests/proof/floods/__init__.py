"""Floods on loopback: long headers, unfinished requests, silent and busy connections, few files, nonsense.

`python -m tests.proof.floods` lets each go on for some seconds against `mainspring studio` in a process of its own,
asks about its health all the while, and tells figures. The test beside it is the short form.
"""
