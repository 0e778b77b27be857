"""What users pass, in the forms that the core expects: arguments, names, locations, frames, properties."""
