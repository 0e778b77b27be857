"""What each statement does, once it is parsed and its names are resolved."""
