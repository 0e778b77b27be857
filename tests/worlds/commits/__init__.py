"""Golden commits: the cases, the world that they run in, their operations, and the rules of what differs from Java."""
