"""A slider that shows one step of several: iterations, noise levels, methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from isinglass.errors import require
from isinglass.pages.part import Part


def stepped(label: str, names: Sequence[str], contents: Sequence[str], *, play: bool = False, rest: str = "") -> str:
    """Return a slider and what is shown at each of its steps.

    Parameters
    ----------
    label : str
        What the steps are.
    names, contents : sequences of str
        What is said, and the HTML that is shown, at each step.
    play : bool
        A button that goes through the steps.
    rest : str
        HTML below; elements in it with an attribute ``data-step`` are shown at that step only.

    Examples
    --------
    >>> stepped("noise", ["10%", "50%"], ["<p>a</p>", "<p>b</p>"]).count("data-step")
    4
    """
    require(len(names) == len(contents), "contents", f"one for each of {len(names)} names", f"{len(contents)}")
    said = "".join(at_step(k, escape(name), "span") for k, name in enumerate(names))
    button = '<button class="play" type="button">play</button>' if play else ""
    slider = f'<input type="range" min="0" max="{len(names) - 1}" value="0" aria-label="{escape(label)}">'
    shown = f'<span class="note">{escape(label)}</span>' if not play else ""
    frames = "\n".join(at_step(k, content) for k, content in enumerate(contents))
    controls = f'<div class="controls">{button}{shown}{slider}<output>{said}</output></div>'
    return f'<div class="steps">{controls}\n{frames}\n{rest}</div>'


def at_step(step: int, content: str, tag: str = "div") -> str:
    """Return HTML that is shown at one step only.

    Examples
    --------
    >>> at_step(2, "<p>a</p>")
    '<div data-step="2"><p>a</p></div>'
    """
    look = ' class="now"' if step == 0 else ""
    return f'<{tag} data-step="{step}"{look}>{content}</{tag}>'


@dataclass(frozen=True)
class Steps(Part):
    """Steps one after the other, with a slider and a button that plays them; HTML that is safe already.

    Parameters
    ----------
    label : str
    names, contents : sequences of str
        What is said, and the HTML that is shown, at each step.
    rest : str
        HTML below, some of it `at_step`.

    Examples
    --------
    >>> Steps("iteration", ["start", "end"], ["<p>a</p>", "<p>b</p>"]).html().count("<p>")
    2
    """

    label: str
    names: Sequence[str]
    contents: Sequence[str]
    rest: str = ""

    def html(self) -> str:
        """Return the slider and the steps."""
        return stepped(self.label, self.names, self.contents, play=True, rest=self.rest)
