"""What both engines share. Nothing that anyone needs lives in this file: the name is generic."""
