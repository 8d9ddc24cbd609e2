"""Log-linear chains: sparse attributes of tokens, labels and their transitions."""
