"""Checks the links of a built site: every file and every anchor exists. Usage: check_links.py DIRECTORY"""

import os
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

# One page with all others, whose links were checked there, and a page whose base is the root of the server.
UNCHECKED = ["print.html", "404.html", "toc.html"]


class Page(HTMLParser):
    """The links and the ids of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids = [], set()
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        self.links.extend(attributes[name] for name in ("href", "src") if attributes.get(name))


def html_files(directory):
    for folder, _, names in os.walk(directory):
        yield from (os.path.join(folder, name) for name in names if name.endswith(".html"))


def main(directory):
    pages = {os.path.normpath(path): Page(path) for path in html_files(directory)}
    problems = []
    for path, page in pages.items():
        if os.path.basename(path) in UNCHECKED:
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path
            if os.path.isdir(target):
                target = os.path.join(target, "index.html")
            if not os.path.exists(target):
                problems.append(f"{path}: {link} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                problems.append(f"{path}: {link} has no such anchor")
    if problems:
        sys.exit("\n".join(sorted(set(problems))))


if __name__ == "__main__":
    main(sys.argv[1])
