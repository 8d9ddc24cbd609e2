"""Every report that an experiment gives here also becomes a page."""

from html import escape

import pytest
from cli_helpers import command  # noqa: F401

from isinglass.pages import page_of
from isinglass_experiments.catalogue import EXPERIMENTS
from isinglass_experiments.page import MOST_BARS, experiment_sections


def with_page(run):
    def checked(self, progress=None):
        report = run(self, progress)
        page = page_of(report.title, experiment_sections(report))
        assert all(escape(str(cell)) in page for row in report.rows for cell in row)
        assert all(escape(note) in page for note in report.notes)
        assert page.count("<figure") > 0 or not 1 < len(report.rows) <= MOST_BARS
        assert page.count("data-near") == len(report.plots)
        pictures = sum(len(stack) for rows in report.pictures.values() for _, stack in rows)
        assert page.count("<img") == pictures
        return report

    return checked


@pytest.fixture(scope="session", autouse=True)
def every_report_becomes_a_page():
    classes = {owner for cls in EXPERIMENTS.values() for owner in cls.__mro__ if "run" in vars(owner)}
    with pytest.MonkeyPatch.context() as patch:
        for cls in classes:
            patch.setattr(cls, "run", with_page(cls.run))
        yield
