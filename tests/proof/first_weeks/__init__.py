"""What a team meets in its first weeks: real workers on PostgreSQL, and all that once went wrong there."""
