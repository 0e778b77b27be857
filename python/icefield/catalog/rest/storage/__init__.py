"""What a server gives to reach the files of a table: credentials that expire, and signatures."""
