"""Work that is counted instead of timed: what a change costs shows on any machine, however busy."""
