"""Checks whether a server could have read a denied call in the bytes that it received.

Parses the bytes, one file for each argument, as the most lenient servers would: any line terminator, batches, the first or the last of
duplicate keys, keys and names regardless of case, spaces and invisible characters, arguments that are a string of JSON. Prints its
findings; the exit status is 1 if there are any.
"""

import json
import re
import sys
import unicodedata


def first_wins(pairs):
    return dict(reversed(pairs))


def any_case(keep):
    """As Go decodes objects into structs: keys are case-insensitive, and the last one wins."""
    return lambda pairs: {fold(key): value for key, value in keep(pairs)}


def fold(text):
    return text.casefold().replace("\u017f", "s").replace("\u212a", "k")


READERS = [
    dict,
    first_wins,
    any_case(lambda pairs: pairs),
    any_case(lambda pairs: pairs[::-1]),
]


def plain(name):
    """A name without the characters that a lenient server may ignore."""
    if not isinstance(name, str):
        return None
    name = unicodedata.normalize("NFKC", name)
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def messages(value):
    if isinstance(value, list):
        for item in value:
            yield from messages(item)
    elif isinstance(value, dict):
        yield value


def path_of(arguments, reader):
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, object_pairs_hook=reader, strict=False)
        except ValueError:
            return None
    if isinstance(arguments, list):
        return next((path for item in arguments if (path := path_of(item, reader))), None)
    return arguments.get("path") if isinstance(arguments, dict) else None


def is_denied(message, reader):
    params = message.get("params")
    if plain(message.get("method")) != "toolscall" or not isinstance(params, dict):
        return False
    tool = plain(params.get("name"))
    path = path_of(params.get("arguments"), reader) if tool == "write" else None
    return tool == "danger" or str(path).startswith("/etc")


def texts(data):
    for encoding in ("utf-8", "latin-1", "utf-16"):
        yield from re.split("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029\0]", data.decode(encoding, "replace"))


def read(text, reader):
    decoder = json.JSONDecoder(object_pairs_hook=reader, strict=False)
    try:
        return decoder.raw_decode(text.strip().lstrip("\ufeff"))[0]
    except (ValueError, RecursionError):
        return None


def findings(data):
    for text in texts(data):
        for reader in READERS:
            for message in messages(read(text, reader)):
                if is_denied(message, reader):
                    yield text


# Self-check: the checker must find these.
SEEN = [
    b'{"method":"tools/call","params":{"name":"danger"}}',
    b'x\r{"method":"tools/call","params":{"name":"danger"}}',
    b'[[{"method":"tools/call","params":{"name":"danger"}}]]',
    b'{"method":"ping","method":"tools/call","params":{"name":"danger"}}',
    b'{"method":"tools/call","method":"ping","params":{"name":"danger"}}',
    b'{"method":"tools/call","params":{"name":"safe","\\u006eame":"danger"}}',
    b'{"method":"ping","Method":"tools/call","params":{"name":"danger"}}',
    b'{"method":"tools/call","param\xc5\xbf":{"name":"danger"},"x":NaN}',
    '{"method":"tools/call","params":{"name":" ｄan\u200bger"}}'.encode(),
    b'{"method":"tools/call","params":{"name":"write","arguments":"{\\"path\\":\\"/etc/x\\"}"}}',
    b'{"method":"tools/call","params":{"name":"write","arguments":{"Path":"/etc/x"}}}',
]
UNSEEN = [
    b'{"method":"tools/call","params":{"name":"safe","arguments":{"name":"danger"}}}',
    b'{"method":"tools/call","params":{"name":"write","arguments":{"path":"/tmp/etc"}}}',
    b'{"method":"ping","params":{"name":"danger"}}',
]


def main():
    for data in SEEN + UNSEEN:
        if bool(next(findings(data), None)) != (data in SEEN):
            sys.exit(f"the self-check failed for {data!r}")
    found = {f"{file}: {text[:300]}": None for file in sys.argv[1:] for text in findings(open(file, "rb").read())}
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
