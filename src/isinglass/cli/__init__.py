"""The command line: ``isinglass infer``, ``convert``, ``info``, ``demo``, ``algorithms`` and ``warmup``."""
