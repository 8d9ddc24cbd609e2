"""What the experiments share: options and reports, the methods that are compared, selection of l2, and statistics."""
