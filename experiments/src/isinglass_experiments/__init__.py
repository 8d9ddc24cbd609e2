"""Published experiments, run again: ours beside the published values (``isinglass reproduce NAME``)."""
