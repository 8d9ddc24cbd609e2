"""How good predictions are: labels, spans, confidences, and all of them in one report."""

from isinglass.metrics.calibration import Reliability, brier_score, calibration_error, reliability
from isinglass.metrics.f_measure import f_measure
from isinglass.metrics.report import ClassScores, Report, mean_iou, report
from isinglass.metrics.spans import SpanScores, sequence_accuracy, span_f1, span_scores, spans
from isinglass.removed import missing_attribute

__all__ = [
    "ClassScores",
    "Reliability",
    "Report",
    "SpanScores",
    "brier_score",
    "calibration_error",
    "f_measure",
    "mean_iou",
    "reliability",
    "report",
    "sequence_accuracy",
    "span_f1",
    "span_scores",
    "spans",
]

__getattr__ = missing_attribute(__name__)
