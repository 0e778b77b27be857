"""Tables by name, and options of Spark about them."""
