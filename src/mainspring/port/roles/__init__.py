"""The verbs of the port by role: a store is the sum of them, and each can be read, and written, by itself.

work           commit, claim, relay, restore, lend, wait
workers        register, heartbeat, release, relieve
streams        load, stream, feed, outlines, messages by id, results
instances      lists, searches, attributes, counts
backlog        what waits, which worker has it, what failed
tasks          list, hand, pick
projections    checkpoints and documents
upkeep         open, close, the time, the era, purge
"""
