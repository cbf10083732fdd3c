"""What ran, how long, and when it is asked for."""
