"""Metadata, footers and page headers written field by field, as other programs may have written or damaged them."""
