"""Recording: events and their details to rows and back, and what is read from recorded rows."""
