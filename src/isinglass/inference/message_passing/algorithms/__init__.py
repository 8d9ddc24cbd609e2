"""The message-passing algorithms, one module each, and what they share."""
