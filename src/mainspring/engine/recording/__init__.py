"""Recording: events and their details to rows and back, and what is read from recorded rows.

recorder (events to rows and back), event_details, event_rows (what a row tells undecoded), stored_values (the small
parts of rows), destinations (what the outbox calls them), error_text, children, saga_rows and answered_commands (what
the rows say of them), fan_out_parts, fingerprint (whose code made a state).

A stored stream is walked by `walk` alone: by what belongs together, back where a reset or a new beginning goes back.
`redecision` decides it once more; time travel, what-if and kept histories are kinds of such walks.
"""
