"""Servers that catalogs are tested against, and checks of what is sent to them."""
