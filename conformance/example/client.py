"""A client for the conformance runner: it reads a call from standard input, makes it with
http.client, and writes what happened. It repeats reads once and never repeats a write."""

import http.client
import json
import ssl
import sys
from urllib.parse import urlsplit


class Refused(Exception):
    """The connection could not be made: nothing was sent."""


def connect(base_url, timeout):
    url = urlsplit(base_url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname, url.port, timeout=timeout)
    try:
        connection.connect()
    except (OSError, ssl.SSLError) as error:
        raise Refused from error
    return connection


def attempt(connection, call):
    """Makes one request and returns its outcome and the ID of the order."""
    request = call["request"]
    headers = {**request["headers"], "X-Service-Api-Key": call["api_key"]}
    try:
        connection.request(request["method"], request["path"], request["body"].encode() or None, headers)
        response = connection.getresponse()
    except (OSError, http.client.HTTPException, ValueError):
        return "unknown", ""
    if 400 <= response.status < 500 and response.status != 408:
        return "rejected", ""
    if not 200 <= response.status < 300:
        return "unknown", ""  # redirects are not followed
    is_json = response.getheader("Content-Type", "").startswith("application/json")
    try:
        order = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError):
        return "unknown", ""
    order = order.get("order", order) if isinstance(order, dict) else {}
    return ("applied", order["id"]) if is_json and order.get("id") else ("unknown", "")


def main():
    call = json.load(sys.stdin)
    outcome, order_id = "unknown", ""
    try:
        connection = connect(call["base_url"], call["timeout_ms"] / 1000)
        if call["warm"]:
            connection.request("GET", call["warm"])
            connection.getresponse().read()
        outcome, order_id = attempt(connection, call)
        connection.close()
        if call["call"] == "read" and outcome == "unknown":
            outcome, order_id = attempt(connect(call["base_url"], call["timeout_ms"] / 1000), call)
    except Refused:
        outcome = "not sent"
    json.dump({"outcome": outcome, "id": order_id}, sys.stdout)


if __name__ == "__main__":
    main()
