"""Max-margin learning beside likelihoods and losses of marginals."""
