"""The reference: the members that a page shows, defaults beside parameters, links from names in code to their pages."""

import inspect
import re
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

PAGES = "".join(path.read_text() for path in sorted(Path(__file__).parents[1].glob("reference/*.rst")))
BASES = re.findall(r"^\.\. autoclass:: (isinglass\.[\w.]+)$", PAGES, re.MULTILINE)  # what authors of algorithms extend
PUBLIC = re.findall(r"^   ~?(isinglass\.[\w.]+)$", PAGES, re.MULTILINE) + BASES
SHORT = {name.rpartition(".")[2]: name for name in reversed(PUBLIC)}
CLASSES = {short: name for short, name in SHORT.items() if short[0].isupper()}
CALL = re.compile(r"(ig\.[\w.]+|[A-Z]\w*[a-z][\w.]*)(\(.*\))?$", re.DOTALL)  # ig.infer(p), FactorGraph
GROUP = re.compile(r"^(\w+(?:, \w+)*)( : .+)?$")  # a parameter or several, and their type


def resolve(name):
    module, _, leaf = name.rpartition(".")
    return getattr(import_module(module), leaf)


def members(cls):
    """Return the names of the methods and the properties that the page of a class shows."""
    found = {"method": [], "property": []}
    if any(base in cls.__mro__ for base in map(resolve, BASES)):  # what to implement; users call `infer`, `fit`, ...
        return found
    for item in inspect.classify_class_attrs(cls):
        ours = item.defining_class.__module__.startswith("isinglass") and not item.name.startswith("_")
        cached = type(item.object).__name__ == "cached_property"
        kind = "property" if cached else item.kind.removeprefix("class ").removeprefix("static ")
        if ours and kind in found and not item.name.endswith("_request"):  # scikit-learn adds those
            found[kind].append(item.name)
    return found


MEMBERS = {name: members(resolve(name)) for name in PUBLIC if inspect.isclass(resolve(name))}
for path in Path(__file__).parents[1].glob("reference/generated/*.rst"):
    if path.stem not in PUBLIC:  # a name that went
        path.unlink()


def add_defaults(app, what, name, obj, options, lines):
    """Write the default of a parameter beside its type; numpydoc reads the docstring afterwards."""
    begin = next((k for k, line in enumerate(lines) if line.strip() == "Parameters"), len(lines)) + 2
    parameters = inspect.signature(obj).parameters if begin < len(lines) else {}
    end = next((k for k in range(begin, len(lines)) if lines[k].startswith("---")), len(lines))
    for k in range(begin, end):
        found = GROUP.match(lines[k])
        if found and "default" not in (found[2] or ""):
            of = [parameters[one].default for one in found[1].split(", ") if one in parameters]
            shown = ", ".join(map(repr, of))
            said = of == [None] and "optional" in (found[2] or "")
            if of and not said and inspect.Parameter.empty not in of and len(shown) < 60:
                lines[k] += f"{',' if found[2] else ' :'} default ``{shown}``"


def link_names(app, document):
    """Make `ig.name` and `ClassName` in Markdown, which are only code there, links to the pages of the names."""
    for code in list(document.findall(nodes.literal)) if document["source"].endswith(".md") else []:
        found = CALL.match(code.astext())
        known = found and (found[1].startswith("ig.") or found[1].partition(".")[0] in CLASSES)
        if known and not isinstance(code.parent, nodes.reference | nodes.title):
            link = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=found[1])
            link["refdoc"] = app.env.docname
            code.replace_self(link)
            link += code


def known_or_code(app, env, node, contnode):
    """Link a name in single backticks, also without its module; leave other words, such as parameters, as code."""
    if node.get("reftype") not in ("obj", "class"):
        return None
    name = node["reftarget"].removeprefix("ig.").removeprefix("isinglass.")
    first, _, rest = name.partition(".")
    for full in (SHORT.get(name), f"isinglass.{name}", f"{SHORT.get(first)}.{rest}"):
        found = env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", full or "", node, contnode)
        if found is not None:
            return found
    return nodes.literal("", contnode.astext())


def redirect(app, error):
    """Lead from the addresses of the former site, NAME/ and gallery/NAME/, to the pages."""
    for page in app.env.found_docs:
        group, _, name = page.rpartition("/")
        if name != "index" and not group.startswith("reference"):
            old = Path(app.outdir, "gallery" if group.startswith("gallery/") else group, name)
            old.mkdir(parents=True, exist_ok=True)
            place = f"{'../' * len(old.relative_to(app.outdir).parts)}{page}.html"
            (old / "index.html").write_text(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={place}">\n')
