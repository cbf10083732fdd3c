"""Control flow as regions: functions that run once, many times or not at all, each construct one node of the tape."""
