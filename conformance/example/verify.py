"""Verifies the vectors of signatures.json. The reason of a delivery is empty if it is valid."""

import base64
import binascii
import hashlib
import hmac
import json
import re
import sys
from decimal import Decimal


def decode_secret(secret):
    encoded = secret.removeprefix("whsec_")
    key = base64.b64decode(encoded.encode("ascii"), validate=True)
    if len(key) < 24 or base64.b64encode(key).decode() != encoded:
        raise ValueError("the secret is short or not canonical")
    return key


def verify(secrets, headers, body, now):
    """Returns the reason and the ID of the delivery."""
    try:
        keys = [decode_secret(secret) for secret in secrets]
    except (ValueError, binascii.Error):
        return "secret", ""
    if not keys:
        return "secret", ""
    reasons, furthest = ["headers", "timestamp", "signature", ""], 0
    for prefix in "webhook", "svix":
        ids, timestamps, lines = ([value for name, value in headers if name.encode().lower() == f"{prefix}-{field}".encode()]
                                  for field in ("id", "timestamp", "signature"))
        reason = verify_set(keys, ids, timestamps, lines, body, now)
        if not reason:
            return "", ids[0]
        furthest = max(furthest, reasons.index(reason))
    return reasons[furthest], ""


def verify_set(keys, ids, timestamps, lines, body, now):
    """Returns the reason for the headers with one prefix."""
    if len(ids) != 1 or len(timestamps) != 1 or not lines or not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", ids[0]):
        return "headers"
    if not re.fullmatch(r"[0-9]+", timestamps[0]) or int(timestamps[0]) >= 2**40:
        return "headers"
    if abs(Decimal(now) - int(timestamps[0])) > 300:
        return "timestamp"
    content = f"{ids[0]}.{timestamps[0]}.".encode() + body
    expected = [base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()) for key in keys]
    fields = re.split("[ \t,]+", ",".join(lines).strip(" \t,"))
    received = [after for version, after in zip(fields, fields[1:]) if version == "v1"]
    if any(hmac.compare_digest(signature.encode(), e) for signature in received[:16] for e in expected):
        return ""
    return "signature"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        vectors = json.load(file)["vectors"]
    failed = 0
    for v in vectors:
        got = verify(v["secrets"], v["headers"], base64.b64decode(v["body"]), v["now"])
        if got != (v["reason"], v.get("id", "")) or v["valid"] != (v["reason"] == ""):
            failed += 1
            print(f"{v['name']}: {got}, want {v['reason']!r}")
    print(f"{len(vectors)} vectors, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
