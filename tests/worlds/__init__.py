"""Random tables, random predicates and a naive evaluation of them: what laws and comparisons are tried on.

Everything comes from one ``random.Random``, so that a seed names a world. Values are plain Python: numbers as numbers,
dates, times and timestamps as the integers that Iceberg stores, uuid, fixed and binary as bytes. Nothing here asks
icefield what a value means, but for the transforms, which the golden vectors hold.
"""
