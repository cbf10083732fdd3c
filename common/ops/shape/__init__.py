"""Views, joins, and elements in another order or place."""
