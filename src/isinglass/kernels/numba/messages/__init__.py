"""Message passing on any graph: updates, whole passes, their reverse, residuals."""
