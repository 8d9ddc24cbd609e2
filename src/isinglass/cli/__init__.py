"""The command line: ``isinglass infer``, ``convert``, ``info``, ``demo`` and ``algorithms``."""
