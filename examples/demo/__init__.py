"""The durable demo: all examples on one SQLite file, with a worker that is killed in the middle.

`scenes` says what is sent, `app` wires the examples' own workflows and handlers, `worker` is the process that is
killed, `drive` sends and kills, `check` holds the database against what the handlers really did, and `screen` shows it.
"""
