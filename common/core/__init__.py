"""What every room speaks of: the op record, specs, sizes, dtypes, errors, the running context, trees."""
