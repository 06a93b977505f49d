"""What SQLite and PostgreSQL have in common: the Python around statements of the same names.

    dialogue     a verb that yields statements and is sent their rows, whatever runs them
    dialect      how one of the two takes values, and gives rows
    store        the sum of the verbs
    statements   the statements of `.sql` files, by name
    migrations   the steps of a schema

The other files are roles of the port, written once: work, streams, instances, backlog, tasks, projections, upkeep.
Where the two differ in more than a statement, a verb is written in their own folders, in the file of the same name.
"""
