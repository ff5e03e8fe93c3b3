"""Pages as plain text and as Markdown, also those that were made to harm."""

import time

import pytest

from perdure.core import limits
from perdure.core.web import html_markdown, html_text

PAGE = """<!DOCTYPE html><html><head><title>Guide &amp; more</title>
<style>p { color: red }</style><script>alert("<p>no</p>")</SCRIPT ></head>
<body><!-- hidden > still --><h1>First <em>steps</em></h1>
<p>Run&nbsp;it <b> now </b>or <a href="/later?a=1&amp;b=2">later</a>.<br>Then wait.</p>
<iframe src="/frame">frame</iframe><object>embedded</object><svg><text>drawn</text></svg>
<ul><li>one</li><li><p>two</p><p>more</p><ol><li>a<li>b</ol></li></ul>
<blockquote><p>quoted</p></blockquote>
<pre><code class="hl language-py">x = 1
    y = "&lt;"</code></pre>
<table><tr><th>Name</th><th>a|b</th></tr><tr><td>x</td><td><b>1</b></td></tr></table>
<hr><img alt="A cat" src="/cat.png"></body></html>"""


def test_the_text_of_a_page_is_its_words_line_by_line() -> None:
    assert html_text.to_text(PAGE) == (
        "Guide & more\nFirst steps\nRun\N{NO-BREAK SPACE}it now or later.\nThen wait.\n"
        'one\ntwo\nmore\na\nb\nquoted\nx = 1\n    y = "<"\nName a|b\nx 1'
    )


def test_the_markdown_of_a_page_keeps_its_structure() -> None:
    assert html_markdown.to_markdown(PAGE) == (
        "Guide & more\n\n# First *steps*\n\n"
        "Run\N{NO-BREAK SPACE}it **now** or [later](/later?a=1&b=2).\nThen wait.\n\n"
        "- one\n- two\n\n  more\n  1. a\n  2. b\n\n> quoted\n\n"
        '```py\nx = 1\n    y = "<"\n```\n\n'
        "| Name | a\\|b |\n| --- | --- |\n| x | **1** |\n\n---\n\n![A cat](/cat.png)"
    )


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("", ""),
        ("plain words", "plain words"),
        ("1 < 2 && 3 > 2", "1 < 2 && 3 > 2"),
        ("<p>open <b>never closed", "open never closed"),
        ("</p></b></table>stray", "stray"),
        ("<b><b>twice</b></b>", "**twice**"),
        ("<b></b><a href=x></a>.", "."),
        ("<a href='javascript:x()'>run</a>", "run"),
        ("<a name=here>anchor</a>", "anchor"),
        ("<img src='data:image/png;base64,AAAA' alt='dot'>", "dot"),
        ("<a title='a > b' href=/x>y</a>", "[y](/x)"),
        ("<p title=it's>fine</p> <p>it's</p>", "fine\n\nit's"),
        ("<h2>a<br>b</h2>", "## a b"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        ("<ul><li>a</ul><p>b</p><ol><li>c</ol>", "- a\n\nb\n\n1. c"),
        ("<blockquote><ul><li>a<li>b</ul></blockquote>", "> - a\n> - b"),
        ("<li>alone", "alone"),
        ("<table><tr><td><h1>Laid</h1><td>out</table>", "# Laid\n\nout"),
        ("<table><tr><td>a<table><tr><td>b</table>c</table>", "a\n\n| b |\n| --- |\n\nc"),
        ("<table><tr><td>a<p>b</p><td></table>", "| a b |  |\n| --- | --- |"),
        ("<script>never closed <p>x", ""),
        ("<svg>never closed <p>x", "never closed\n\nx"),
        ("<!-->shown", "shown"),
        ("<!-- never closed <p>x", ""),
        ("a<?php echo 1 ?>b<![CDATA[c]]>d", "abd"),
        ("&#0;&#xD800;&#1114112;&bogus;&amp", "\N{REPLACEMENT CHARACTER}" * 3 + "&bogus;&"),
        ("&#" + "9" * 5000 + ";", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_broken_pages_keep_their_words(page: str, expected: str) -> None:
    assert html_markdown.to_markdown(page) == expected


CODE: dict[str, str] = {
    "line breaks": "<pre>one<br>two<br/>three</pre>",
    "line breaks in code": "<pre><code>one<br>two<BR>three</code></pre>",
    "a line break in each line": "<pre><i>one<br></i><i>two<br></i>three</pre>",
    "an element for each line": "<pre><div>one</div><div>two</div><div>three</div></pre>",
    "elements and line ends": "<pre><div>one</div>\n<div>two</div>\n<div>three\n</div></pre>",
    "a paragraph for each line": "<pre><code><p>one</p><p>two</p><p>three</p></code></pre>",
    "an item for each line": "<pre><ol><li>one<li>two<li>three</ol></pre>",
    "a row for each line": "<pre><table><tr><td>one</tr><tr><td>two<tr><td>three</table></pre>",
    "a styled line": '<pre><i style="display: block">one</i><i style="display:block">two</i>'
    "<i style='color:red;display : block'>three</i></pre>",
    "a line by class": '<pre><span class="line">one</span><span class="hl line">two</span>'
    "<span class=token-line>three</span></pre>",
    "a first line end": "<pre>\none\ntwo\nthree</pre>",
    "an older element": "<xmp>one\ntwo\nthree</xmp>",
    "an even older element": "<listing>one\ntwo\nthree</listing>",
    "without an end": "<pre>one<br>two<br>three",
}


@pytest.mark.parametrize("page", CODE.values(), ids=CODE.keys())
def test_the_lines_of_a_program_stay_lines(page: str) -> None:
    assert html_markdown.to_markdown(page) == "```\none\ntwo\nthree\n```"
    assert html_text.to_text(page) == "one\ntwo\nthree"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<pre><div>one</div><div></div><div>two</div></pre>", "one\n\ntwo"),
        ("<pre>one<br><br>two</pre>", "one\n\ntwo"),
        ("<pre>  one\t<b>two</b>\n\tthree</pre>", "  one\ttwo\n\tthree"),
        ("<pre><span class=keyword>if</span> <span class=line-number>x</span></pre>", "if x"),
        ("<xmp><b>&amp;</b></xmp>", "<b>&amp;</b>"),
        (
            "<pre><table><tr><td>1</td><td>one</td></tr><tr><td>2<td>two</table></pre>",
            "1 one\n2 two",
        ),
        ("<pre><td>a </td><th>b</th>\n<td>c</td></pre>", "a b\nc"),
        ("<pre><b class=line>one <b>x</b></b>two</pre>", "one x\ntwo"),
    ],
)
def test_the_text_of_a_program_is_as_written(page: str, expected: str) -> None:
    assert html_text.to_text(page) == expected
    assert html_markdown.to_markdown(page) == f"```\n{expected}\n```"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("a<!-- x -->b", "ab"),
        ("a<!-- x --!>b", "ab"),
        ("a<!-- x -- y --!>b", "ab"),
        ("a<!-->b", "ab"),
        ("a<!--->b", "ab"),
        ("a<!---->b", "ab"),
        ("a<!--!>b-->c", "ac"),
        ("a<!--x--!-->b", "ab"),
        ("a<!--x->b-->c", "ac"),
        ("a<!-- <!-- x -->b", "ab"),
        ("a<!-- never closed", "a"),
        ("a<! x>b", "ab"),
        ("a<?php x ?>b", "ab"),
        ("a<![CDATA[ x ]]>b", "ab"),
        ("a</ x>b", "ab"),
        ("a</>b", "ab"),
        ("<title>a <b> c</title>d", "a <b> c\n\nd"),
        ("<textarea><p>a &lt; b</textarea>c", "<p>a < b\n\nc"),
        ("<title>never closed<p>a", "never closed\n\na"),
    ],
)
def test_comments_and_text_elements_end_where_browsers_end_them(page: str, expected: str) -> None:
    assert html_markdown.to_markdown(page) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<a href=/x><h3>Card</h3></a>", "### [Card](/x)"),
        ("<a href=/x><h3>Card</h3><p>More.</p></a>after", "### [Card](/x)\n\nMore.\n\nafter"),
        ("<a href=/x><div><img src=/i><p>Card</p></div></a>", "[![](/i)](/x)\n\n[Card](/x)"),
        ("<a href=/x><div></div><div><b>Card</b></div></a>", "[**Card**](/x)"),
        (
            "<ul><li><a href=/x><p>one</p></a><li><a href=/y><p>two</p></a></ul>",
            "- [one](/x)\n- [two](/y)",
        ),
        ("<a href=/x>before<h2>Card</h2></a>", "[before](/x)\n\n## Card"),
        ("<a href=/x><p>one</p><a href=/y><p>two</p></a>", "[one](/x)\n\n[two](/y)"),
        (
            "<table><tr><td><a href=/x><div>Card</div></a></td></tr></table>",
            "| [Card](/x) |\n| --- |",
        ),
        ("<a href=/x><pre>code</pre><p>Card</p></a>", "```\ncode\n```\n\n[Card](/x)"),
        ("<p><a href=/x>open<p>Card", "[open](/x)\n\nCard"),
        (
            "<a href=/x><img src=/i alt=P><h3>Card</h3>more</a>",
            "[![P](/i)](/x)\n\n### [Card](/x)\n\nmore",
        ),
        ("<a href=/x><figure><img src=/i></figure></a>after", "[![](/i)](/x)\n\nafter"),
        ("<a href=/x><pre>code</pre></a>after", "```\ncode\n```\n\n[/x](/x)\n\nafter"),
        ("<a href=/x><pre>code</pre>", "```\ncode\n```\n\n[/x](/x)"),
        ("<a href=/x><pre>one</pre><a href=/y>two</a>", "```\none\n```\n\n[/x](/x)\n\n[two](/y)"),
        ("<a href=/x><table><tr><td>a<td>b</table></a>", "| [a](/x) | b |\n| --- | --- |"),
        ("<a href=/x><table><tr><td><td>b</table></a>", "|  | [b](/x) |\n| --- | --- |"),
        ("<table><tr><td><a href=/x>a<td>b</table>c", "| [a](/x) | b |\n| --- | --- |\n\nc"),
        ("w<a href=/x><br>a<p>b</a>", "w\n[a](/x)\n\nb"),
    ],
)
def test_a_link_around_blocks_stays_a_link(page: str, expected: str) -> None:
    assert html_markdown.to_markdown(page) == expected


HOSTILE = {
    "nested": "<div>",
    "nested-quotes": "<blockquote>x",
    "nested-lists": "<ul><li>x",
    "nested-tables": "<table><tr><td>x",
    "nested-emphasis": "<b>x",
    "half-closed": "<b>x</i>",
    "angles": "<",
    "declarations": "<!",
    "comments": "<!--",
    "short-comments": "<!>",
    "ends": "</",
    "scripts": "<script>",
    "dropped": "<svg><math><object>",
    "open-dropped": "<svg></svg",
    "quotes": '<a b="',
    "equals": "<a = ",
    "references": "&#1",
    "ampersands": "&",
    "cells": "<table><td><p>x",
    "code": "<pre>`",
    "nul": "\0<p>",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_work_grows_with_the_length_of_the_page_alone(piece: str) -> None:
    def seconds(count: int) -> float:
        begun = time.process_time()
        html_text.to_text(piece * count)
        html_markdown.to_markdown(piece * count)
        return time.process_time() - begun

    # Ten times as much may take ten times as long; squared it would be a hundred.
    assert seconds(8_000) < 40 * max(seconds(800), 0.002)


def test_what_is_nested_ten_thousand_times_is_still_read() -> None:
    for tag in ("div", "b", "blockquote", "table"):
        page = f"<{tag}>" * 10_000 + "<p>the words</p>" + f"</{tag}>" * 10_000
        assert html_text.to_text(page) == "the words"
        assert "the words" in html_markdown.to_markdown(page)


def test_deep_nesting_does_not_blow_a_page_up() -> None:
    page = "<blockquote>x" * 10_000
    assert len(html_markdown.to_markdown(page)) < len(page) * limits.WEB_NESTING_MAX
