"""What people and other libraries get: texts, HTML, progress lines, plans, frames and datasets."""
