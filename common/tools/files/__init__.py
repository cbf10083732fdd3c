"""Arrays and event files on disk."""
