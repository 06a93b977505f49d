"""A fleet of worker processes on PostgreSQL that is rolled to the next release and back under load.

One worker after the other is replaced while others send trips of both releases. Between any two replacements trips of
each release that has workers must come to their end: nothing that one worker cannot read may starve what stands behind
it. In the end a worker of the next release finishes all, and nothing was suspended or became a dead letter.
"""
