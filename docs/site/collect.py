"""Collects the sources of the documentation site: the pages that docs/SUMMARY.md lists, and the files that they link to.

Paths stay as they are in the repository, so links that work there work on the site. Usage: collect.py DIRECTORY
"""

import os
import posixpath
import re
import shutil
import sys

LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
BLOCK = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
SITE = "docs/site"


def links(page, text):
    """The files that a page links to, relative to the root of the repository."""
    targets = (match[2] for match in LINK.finditer(BLOCK.sub("", text)))
    relative = (target for target in targets if ":" not in target)
    return [posixpath.normpath(posixpath.join(posixpath.dirname(page), target)) for target in relative]


def with_index_links(text):
    """mdBook writes README.md as index.html, but leaves links to it."""
    return LINK.sub(lambda link: f"{link[1]}{re.sub(r'README[.]md$', 'index.md', link[2])}{link[3] or ''}{link[4]}", text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(directory):
    source = os.path.join(directory, "src")
    summary = read("docs/SUMMARY.md")
    pages = links("docs/SUMMARY.md", summary)
    from_root = LINK.sub(lambda link: f"{link[1]}{posixpath.normpath('docs/' + link[2])}{link[4]}", summary)
    write(os.path.join(source, "SUMMARY.md"), from_root)
    problems = []
    for page in pages:
        text = read(page)
        write(os.path.join(source, page), with_index_links(text))
        for target in links(page, text):
            if target in pages or (os.path.isdir(target) and f"{target}/README.md" in pages):
                continue
            if target.endswith(".md") or not os.path.isfile(target):
                problems.append(f"{page}: {target} is not a page of the site: add it to docs/SUMMARY.md, or link to a file")
                continue
            os.makedirs(os.path.dirname(os.path.join(source, target)), exist_ok=True)
            shutil.copyfile(target, os.path.join(source, target))
    for name in ["book.toml", "site.css", "blocks.js"]:
        shutil.copyfile(f"{SITE}/{name}", os.path.join(directory, name))
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main(sys.argv[1])
