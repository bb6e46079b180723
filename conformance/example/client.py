"""A client for the conformance runner. For each line of standard input, a call in JSON, it makes
the call with http.client and writes a line that says what happened. It repeats a read once and
never repeats a write."""

import http.client
import json
import sys
from urllib.parse import urlsplit


class Response(http.client.HTTPResponse):
    """Skips all informational responses. http.client itself skips only 100."""

    def _read_status(self):
        version, status, reason = super()._read_status()
        while 101 < status < 200:
            http.client.parse_headers(self.fp)
            version, status, reason = super()._read_status()
        return version, status, reason


class NotConnected(Exception):
    """Nothing was sent."""


def connect(call):
    url = urlsplit(call["base_url"])
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname, url.port, timeout=call["timeout_ms"] / 1000)
    connection.response_class = Response
    try:
        connection.connect()
    except OSError as error:
        raise NotConnected from error
    return connection


def attempt(connection, call):
    """Makes one request. It returns the outcome, the ID of the order, and whether to repeat a read."""
    request = call["request"]
    headers = {**request["headers"], "X-Service-Api-Key": call["api_key"]}
    try:
        connection.request(request["method"], request["path"], request["body"].encode() or None, headers)
        response = connection.getresponse()
    except (OSError, http.client.HTTPException, ValueError):
        return "unknown", "", True
    if 400 <= response.status < 500 and response.status != 408:
        return "rejected", "", False
    if not 200 <= response.status < 300:  # redirects are not followed
        return "unknown", "", response.status >= 400 and not response.getheader("Retry-After")
    try:
        order = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError):
        return "unknown", "", True
    order_id = order.get("order", order).get("id", "") if isinstance(order, dict) else ""
    return ("applied", order_id, False) if order_id else ("unknown", "", False)


def make(call):
    try:
        connection = connect(call)
        if call["warm"]:
            connection.request("GET", call["warm"])
            connection.getresponse().read()
        outcome, order_id, again = attempt(connection, call)
        connection.close()
        if again and call["call"] == "read":
            connection = connect(call)
            outcome, order_id, _ = attempt(connection, call)
            connection.close()
        return {"outcome": outcome, "id": order_id}
    except NotConnected:
        return {"outcome": "not sent", "id": ""}


for line in sys.stdin:
    print(json.dumps(make(json.loads(line))), flush=True)
