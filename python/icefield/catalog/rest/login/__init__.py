"""Which credentials requests have, by the properties of a catalog."""
