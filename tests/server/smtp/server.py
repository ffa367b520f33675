"""A mail server with STARTTLS and authentication: `server.py CERTIFICATE KEY`. Prints its port, then each message as a line of JSON."""

import asyncio
import email
import json
import ssl
import sys
from email import policy

from aiosmtpd.smtp import SMTP, AuthResult

BUSY = set()


class Mailboxes:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("gone"):
            return "550 there is no such mailbox"
        if address.startswith("busy") and address not in BUSY:
            BUSY.add(address)
            return "450 try again"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.original_content, policy=policy.default)
        parts = [part for part in message.walk() if not part.is_multipart()]
        print(json.dumps({
            "to": envelope.rcpt_tos,
            "from": envelope.mail_from,
            "tls": session.ssl is not None,
            "user": session.auth_data.decode() if session.auth_data else None,
            "headers": [[name.lower(), str(value)] for name, value in message.items()],
            "parts": [[part.get_content_type(), part.get_content()] for part in parts],
            "defects": [str(defect) for part in message.walk() for defect in part.defects],
        }), flush=True)
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    known = data.login == b"callgate" and data.password == b"mail-password"
    return AuthResult(success=known, handled=False, auth_data=data.login)


async def main():
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(sys.argv[1], sys.argv[2])
    protocol = lambda: SMTP(
        Mailboxes(), tls_context=tls, require_starttls=True, auth_required=True, authenticator=authenticate, hostname="localhost"
    )
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
