#!/usr/bin/env python3
"""Checks that what the Markdown files link to exists: files, and headings that an anchor names.

    test/links.py                 every file that git knows
    test/links.py README.md ...   only these

Links to other hosts are left alone.
"""

import functools
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\]\(\s*<?([^\s)>]+)|^\s*\[[^\]]+\]:\s+<?([^\s>]+)|(?:href|src|srcset)=\"([^\"]+)\"", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
FENCED = re.compile(r"<!--.*?-->|^ *(```+|~~~+).*?^ *\1", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
NAMED = re.compile(r"<[^>]*\b(?:id|name)=\"([^\"]+)\"")


def without(pattern, text):
    """Keeps the line breaks."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", "", match[0]), text)


@functools.cache
def anchors(path):
    """As GitHub makes them of headings: words in lower case, joined by hyphens; a number after one that is there already."""
    text = without(FENCED, path.read_text())
    found = set(NAMED.findall(text))
    for heading in HEADING.findall(text):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        again = 0
        while (unique := f"{name}-{again}" if again else name) in found:
            again += 1
        found.add(unique)
    return found


def problem(page, target):
    """What is wrong with this link; None if nothing is."""
    name, _, anchor = target.partition("#")
    path = (page.parent / name) if name else page
    if not path.exists():
        return "there is no such file"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return "no heading there has this anchor"
    return None


def main():
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return
    listed = subprocess.run(["git", "ls-files", "*.md"], check=True, capture_output=True, text=True).stdout.split()
    links = broken = 0
    for page in map(pathlib.Path, sys.argv[1:] or listed):
        text = without(CODE, without(FENCED, page.read_text()))
        for match in LINK.finditer(text):
            target = next(group for group in match.groups() if group)
            if re.match(r"[a-z][a-z+.-]*:|//", target):
                continue
            links += 1
            wrong = problem(page, target)
            if wrong:
                broken += 1
                print(f"{page}:{text.count(chr(10), 0, match.start()) + 1}: {target}: {wrong}", file=sys.stderr)
    print(f"{links} links, {broken} broken")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
