"""Streams to a file, and what of them may leave.

export         streams to a file, in one of the formats: export
stream_file    JSON lines, which can be read again
event_logs     XES and OCEL, for process mining; imported when they are asked for
redaction      what of a message may leave the database
viewed_store   a store as seen by someone with limited permissions
"""
