"""Empirical risk minimisation of the whole system (Stoyanov, Ropson and Eisner 2011), tables 3 to 6 and figure 1."""
