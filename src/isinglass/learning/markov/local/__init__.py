"""Methods without log Z: products of conditionals, single factors, ratios of probabilities, and empirical moments."""
