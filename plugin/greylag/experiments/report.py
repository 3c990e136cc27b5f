"""A study's report: one self-contained HTML file with tables, figures and provenance.

The same sections give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greylag.experiments.figures import Figure, check_dependencies
from greylag.experiments.tables import Table, cell_text
from greylag.files import write_text


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report.

    Parameters
    ----------
    title : str
    text : str, default ""
        Paragraphs, separated by blank lines.
    parts : sequence of Table or Figure, default ()
        Shown after the text.
    """

    title: str
    text: str = ""
    parts: Sequence[Table | Figure] = ()


def write_report(path: str | Path, title: str, sections: Sequence[Section], provenance: Mapping[str, Any]) -> None:
    """Write a report atomically.

    Parameters
    ----------
    path : str or Path
    title : str
    sections : sequence of Section
    provenance : mapping of name to JSON-serialisable value
        Listed at the end.

    Raises
    ------
    DependencyError
        If matplotlib or jinja2 is missing.
    """
    check_dependencies()
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"cell": cell_text, "value": _value}
    page = environment.from_string(_TEMPLATE).render(title=title, sections=sections, provenance=provenance)
    write_text(path, page)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1)


_TEMPLATE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 54rem; margin: 2rem auto;
  padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption, figcaption { text-align: left; color: #555; font-size: 0.9rem; padding: 0.3rem 0; }
th, td { padding: 0.15rem 0.8rem 0.15rem 0; text-align: left; border-bottom: 1px solid #ddd; vertical-align: top; }
.number { text-align: right; }
figure { margin: 1rem 0; }
svg { max-width: 100%; height: auto; }
pre { margin: 0; white-space: pre-wrap; font-size: 0.8rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for section in sections %}
<section>
<h2>{{ section.title }}</h2>
{% for paragraph in section.text.split("\n\n") if paragraph.strip() %}
<p>{{ paragraph }}</p>
{% endfor %}
{% for part in section.parts %}
{% if part.svg is defined %}
<figure>
{{ part.svg | safe }}
<figcaption>{{ part.caption }}</figcaption>
</figure>
{% else %}
<div class="wide"><table>
<caption>{{ part.caption }}</caption>
<thead><tr>{% for name in part.header %}<th{% if part.rows | map(attribute=loop.index0) | select("number") | list %} \
class="number"{% endif %}>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in part.rows %}
<tr>{% for value in row %}<td{% if value is number %} class="number"{% endif %}>{{ value | cell(part.decimals) }}</td>\
{% endfor %}</tr>
{% endfor %}
</tbody>
</table></div>
{% endif %}
{% endfor %}
</section>
{% endfor %}
<section>
<h2>Provenance</h2>
<div class="wide"><table>
<tbody>
{% for name, value in provenance.items() %}
<tr><th>{{ name }}</th><td><pre>{{ value | value }}</pre></td></tr>
{% endfor %}
</tbody>
</table></div>
</section>
</body>
</html>
"""
