//! Puffin files: statistics and deletion vectors (Puffin spec; "Deletion Vectors").
