"""Recording: events and their details to rows and back, and what is read from recorded rows.

recorder (events to rows and back), event_details, event_rows (what a row tells undecoded), error_text, children and
sagas (what the rows say of them), fan_out_parts, redecision (a stream decided once more), fingerprint and class_source
(whose code made a state).
"""
