"""What Stoyanov, Ropson and Eisner (2011) print: differences from the loss of the true model, means of 12 models."""

from __future__ import annotations

TRUE = {"frac-MSE": 0.04610, "int-F": 0.06425, "int-L1": 0.06385}

TABLE_3 = {  # (test setting, training setting): (difference, wins-ties-losses against APPR-LOGL)
    ("frac-MSE", "APPR-LOGL"): (0.00710, ""),
    ("frac-MSE", "frac-MSE"): (0.00482, "5-0-7"),
    ("frac-MSE", "frac-MSE-in"): (0.00057, "12-0-0"),
    ("int-F", "APPR-LOGL"): (0.01170, ""),
    ("int-F", "int-F-hyb"): (0.00411, "7-0-5"),
    ("int-F", "int-F-in"): (0.00115, "10-1-1"),
    ("int-F", "int-F-hyb-in"): (0.00081, "11-0-1"),
    ("int-L1", "APPR-LOGL"): (0.00751, ""),
    ("int-L1", "int-L1-hyb"): (0.00398, "5-1-6"),
    ("int-L1", "int-L1-in"): (0.00137, "10-2-0"),
    ("int-L1", "int-L1-hyb-in"): (0.00079, "10-2-0"),
    ("APPR-LOGL", "APPR-LOGL"): (-0.31618, ""),
}

_PERTURBATIONS, _ITERATIONS = (0.1, 0.2, 0.3, 0.4), (100, 30, 20, 10)
_ROWS_4 = {
    ("frac-MSE", False): (0.00352, 0.00642, 0.00622, 0.01118),
    ("frac-MSE", True): (0.00101, 0.00316, 0.00312, 0.00534),
    ("int-F", False): (0.01042, 0.01928, 0.01026, 0.02123),
    ("int-F", True): (0.00095, 0.00472, 0.00473, 0.00969),
    ("int-L1", False): (0.00452, 0.00748, 0.00569, 0.01173),
    ("int-L1", True): (0.00147, 0.00442, 0.00602, 0.00945),
    ("APPR-LOGL", False): (-0.3096, -0.0180, -0.0373, -0.1169),
}
_ROWS_5 = {
    ("frac-MSE", False): (0.00710, 0.00301, 0.00816, 0.02461),
    ("frac-MSE", True): (0.00057, 0.00072, 0.00063, 0.00064),
    ("int-F", False): (0.01170, 0.00476, 0.01276, 0.03085),
    ("int-F", True): (0.00081, 0.00126, 0.00058, 0.00091),
    ("int-L1", False): (0.00751, 0.00344, 0.01087, 0.02984),
    ("int-L1", True): (0.00079, 0.00101, 0.00078, 0.00096),
    ("APPR-LOGL", False): (-0.3161, -0.1823, -0.2422, -0.1104),
}
TABLE_4 = {(*row, p): value for row, values in _ROWS_4.items() for p, value in zip(_PERTURBATIONS, values, strict=True)}
TABLE_5 = {(*row, t): value for row, values in _ROWS_5.items() for t, value in zip(_ITERATIONS, values, strict=True)}

TABLE_6 = {  # (test setting, setting that was trained for)
    ("frac-MSE", "frac-MSE"): 0.00057, ("frac-MSE", "int-F"): 0.00122, ("frac-MSE", "int-L1"): 0.00115,
    ("frac-MSE", "APPR-LOGL"): 0.0071,
    ("int-F", "frac-MSE"): 0.00109, ("int-F", "int-F"): 0.00081, ("int-F", "int-L1"): 0.00106,
    ("int-F", "APPR-LOGL"): 0.0117,
    ("int-L1", "frac-MSE"): 0.00069, ("int-L1", "int-F"): 0.00096, ("int-L1", "int-L1"): 0.00079,
    ("int-L1", "APPR-LOGL"): 0.00751,
    ("APPR-LOGL", "frac-MSE"): 0.11141, ("APPR-LOGL", "int-F"): 0.16153, ("APPR-LOGL", "int-L1"): 0.1508,
    ("APPR-LOGL", "APPR-LOGL"): -0.31618,
}  # fmt: skip
