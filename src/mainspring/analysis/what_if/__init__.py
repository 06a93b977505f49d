"""What if this code had run? Recorded streams, held against today's code.

comparison    one stream: every input decided once more, every event folded, and held against what was recorded
contrast      what has changed in a decision or a state, in few words
report        what was found in many streams, by kind of difference
check         the streams of a store, here or in several processes, or those in a file: check, check_file
old_code      older code beside today's, and the states that it comes to
old_process   the process in which it runs
"""
