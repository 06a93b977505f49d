"""A document is approved by somebody other than its maker.

One person makes a document, another checks it: the maker may hand it in but never approve it, whatever roles they
have. A checker who finds fault sends it back with a reason, and the maker is asked for a better draft. There are at
most three rounds. A document that fails the last of them, that nobody checks or that nobody improves, is given up; an
approved one goes to the archive, with the names of both.
"""
