"""Texts that would do something if a page took them for anything but text: a table, made family by family."""

from __future__ import annotations

RUN = "window.pwned=1"
FOREIGN = "203.0.113.9"

_BREAKS = (
    "",
    "</script>",
    '">',
    "'>",
    "-->",
    "]]>",
    "</textarea>",
    "</title>",
    "</style>",
    "</noscript>",
    "`>",
    "\\'>",
)
_TAGS = (
    f"<img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><use href='data:image/svg+xml,<svg id=x onload={RUN}>#x'>",
    f"<body onload={RUN}>",
    f"<iframe src=javascript:{RUN}></iframe>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<object data=javascript:{RUN}></object>",
    f"<embed src=javascript:{RUN}>",
    f"<math><mtext><img src=x onerror={RUN}></mtext></math>",
    f"<details open ontoggle={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}>",
    f"<marquee onstart={RUN}>",
    f"<form action=javascript:{RUN}><button>press</button></form>",
    f"<dialog open onfocus={RUN} tabindex=1 autofocus>",
    f"<custom-element onpointerover={RUN}>x</custom-element>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    f"<template><script>{RUN}</script></template>",
    f"<!--><script>{RUN}</script-->",
    f"<![CDATA[<script>{RUN}</script>]]>",
    f"<xmp><script>{RUN}</script></xmp>",
    f"<ScRiPt>{RUN}</sCrIpT>",
    f"<script/x>{RUN}</script>",
    f"<<script>{RUN}//<</script>",
    "<plaintext>",
    "<style>*{display:none!important}</style>",
    f"<link rel=stylesheet href=http://{FOREIGN}/x.css>",
    f"<base href=http://{FOREIGN}/>",
    f"<meta http-equiv=refresh content='0;url=http://{FOREIGN}/'>",
    f"<img src=http://{FOREIGN}/pixel.png>",
)
_FOCUSED = tuple(f"<{tag} autofocus onfocus={RUN}>" for tag in ("input", "select", "textarea", "keygen", "button"))
_ATTRIBUTES = (
    f'" onmouseover="{RUN}',
    f"' onmouseover='{RUN}",
    f"x onfocus={RUN} autofocus tabindex=1",
    f'" style="position:fixed;inset:0;background:url(http://{FOREIGN}/)',
    '" hidden "',
    f'" src=x onerror="{RUN}',
)
_ADDRESSES = (
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f"java\tscript:{RUN}",
    f"\x01javascript:{RUN}",
    f"javascript&colon;{RUN}",
    f"&#106;avascript:{RUN}",
    "vbscript:msgbox(1)",
    f"data:text/html,<script>{RUN}</script>",
    "data:text/html;base64,PHNjcmlwdD4x",
    "blob:http://127.0.0.1/x",
    f"//{FOREIGN}/x",
    f"\\\\{FOREIGN}\\share",
    "file:///etc/passwd",
    f"<a href=javascript:{RUN}>press me</a>",
    f"[press](javascript:{RUN})",
    f"![x](http://{FOREIGN}/x.png)",
    f"<http://{FOREIGN}/>",
    f"[x]: http://{FOREIGN}/ '{RUN}'",
)
_STYLES = (
    f"expression({RUN})",
    f"background:url('http://{FOREIGN}/x')",
    f"@import 'http://{FOREIGN}/x.css';",
    "}*{display:none",
    "--mc-ok: red; color: transparent",
    "mc-pill mc-ok",
)
_TEMPLATES = (
    "{{constructor.constructor('window.pwned=1')()}}",
    "{{7*7}}",
    "{{{raw}}}",
    "${window.pwned=1}",
    "`-alert(1)-`",
    "<%= 7*7 %>",
    "#{7*7}",
    "@(1+1)",
    "{%raw%}<script>window.pwned=1</script>",
    "[[${7*7}]]",
    "%{7*7}",
    "{!7*7!}",
    '{"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=window.pwned=1>"}}',
    "ng-on-click=window.pwned=1",
    "v-html=window.pwned",
)
_ENCODED = (
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "&#60;script&#62;window.pwned=1&#60;/script&#62;",
    "%3Cscript%3Ewindow.pwned=1%3C/script%3E",
    "\\u003cscript\\u003ewindow.pwned=1",
    "\\x3cscript\\x3ewindow.pwned=1",
    "+ADw-script+AD4-window.pwned=1",
    "\uff1cscript\uff1ewindow.pwned=1",
)
_NAMES = (
    "__proto__",
    "constructor",
    "toString",
    "null",
    "undefined",
    "[object Object]",
    "NaN",
    "true",
    "-1",
    "1e999",
)
_TOOLS = (
    "'; drop table runs; --",
    "../../../etc/passwd",
    "~/.ssh/id_rsa",
    "$(touch pwned)",
    "; rm -rf /",
    "--help",
    "CON",
    "a%00b",
    "a:b?c#d&e=f",
    'data: {"id": 1}',
    "event: ended",
    ": a comment of a stream",
    "@@ -1,1 +1,1 @@",
    "diff --git a/x b/x",
    "+++ b/x",
    "# not a heading",
    "| a | b |",
    "```\nfence",
)
_SCRIPTS = tuple(f"{before}<script>{RUN}</script>" for before in _BREAKS)
MARKUP = tuple(
    dict.fromkeys(
        (
            *_SCRIPTS,
            *_TAGS,
            *_FOCUSED,
            *_ATTRIBUTES,
            *(a for a in _ADDRESSES if "\x01" not in a),
            *_STYLES,
            *_TEMPLATES,
            *_ENCODED,
            *_NAMES,
            *_TOOLS,
        )
    )
)
_MARKS = (
    *(0x1, 0x7, 0x8, 0xB, 0xC, 0x1B, 0x7F, 0x85, 0x9B, 0xAD, 0x34F, 0x61C, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E),
    *(0x200F, 0x2028, 0x2029, 0x202A, 0x202B, 0x202D, 0x202E, 0x2060, 0x2066, 0x2067, 0x2068, 0x2069, 0x3164, 0xFEFF),
    *(0xFFF9, 0xE0041, 0xE0100),
)
# Each with the mark that the page shows in place of a character that can't be seen or turns the text around.
HIDDEN = tuple((f"be{chr(code)}fore", f"U+{code:04X}") for code in _MARKS)
WIDE = ("a" * 3_000, "語" * 900, "🦀" * 400, "e" + "\u0301" * 300, "\t" * 200, "word " * 600, "https://" + "x/" * 500)
EVERY = MARKUP + tuple(text for text, _ in HIDDEN) + WIDE
