"""The ways in which one iteration of message passing is done, each with its reverse."""
