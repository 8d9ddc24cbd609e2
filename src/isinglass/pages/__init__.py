"""Pages: one self-contained HTML file of figures, tables and text, light and dark, that needs no network.

A page is a title and sections; a section is a heading and parts. All text is escaped. Drawings are SVG with values
under the pointer, pictures are inside the file, tables sort by a click. One style sheet and one script serve all pages;
a content security policy lets that script run and no other, and nothing be loaded from elsewhere.
"""

from isinglass.pages.bars import Bars
from isinglass.pages.heat import Heat
from isinglass.pages.lines import Lines
from isinglass.pages.page import page_of
from isinglass.pages.part import Code, Facts, Note, Part
from isinglass.pages.pictures import Pictures
from isinglass.pages.steps import Steps
from isinglass.pages.table import Table
from isinglass.pages.tokens import Tokens

__all__ = [
    "Bars",
    "Code",
    "Facts",
    "Heat",
    "Lines",
    "Note",
    "Part",
    "Pictures",
    "Steps",
    "Table",
    "Tokens",
    "page_of",
]
