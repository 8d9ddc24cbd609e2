"""Every report that an experiment gives here also becomes a page."""

from html import escape

import pytest
from cli_helpers import command  # noqa: F401

from isinglass.pages import page_of
from isinglass_experiments.catalogue import EXPERIMENTS
from isinglass_experiments.page import experiment_sections


def with_page(run):
    def checked(self, progress=None):
        report = run(self, progress)
        page = page_of(report.title, experiment_sections(report))
        assert all(escape(str(cell)) in page for row in report.rows for cell in row)
        assert all(escape(note) in page for note in report.notes)
        pictures = sum(len(rows) for rows in report.pictures.values())
        assert page.count('class="pixels"') == pictures
        assert page.count("<img") == pictures + len(report.plots)
        return report

    return checked


@pytest.fixture(scope="session", autouse=True)
def every_report_becomes_a_page():
    classes = {owner for cls in EXPERIMENTS.values() for owner in cls.__mro__ if "run" in vars(owner)}
    with pytest.MonkeyPatch.context() as patch:
        for cls in classes:
            patch.setattr(cls, "run", with_page(cls.run))
        yield
