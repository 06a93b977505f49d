"""Committing: units go into the store together: committer (group commit)."""
