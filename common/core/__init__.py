"""The vocabulary of every room: the op record, specs, sizes, dtypes, errors, the running context, trees."""
