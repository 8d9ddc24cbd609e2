"""Mean field: independent variables, or independent trees."""
