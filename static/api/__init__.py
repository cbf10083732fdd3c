"""The public functions as this engine offers them."""
