"""What a commit means, once for all stores, and without any input or output.

    questions   what a batch of units must know, gathered in one walk over them
    facts       what a store answers, and what is known of each instance
    judge       the verdict on each unit in turn, over the facts and what earlier units have changed
    changes     what the units do, collected for the store to write
    task_book   the tasks of a batch, before and after
    rows        records as rows, with their checksums
    task_rows   tasks as rows

A store locks, answers and writes. It decides nothing: a new rule of commit is one change, in `judge`.
"""
