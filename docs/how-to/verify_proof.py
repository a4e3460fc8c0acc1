"""Checks a payonce proof with nothing but Python's standard library: python verify_proof.py PROOF.json PUBLIC_KEY"""

import base64
import hashlib
import json
import sys

# Ed25519 (RFC 8032, section 5.1), written to be read, not to be fast.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(a, b):
    m, n = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = n - m, d - c, d + c, n + m
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(k, point):
    result = (0, 1, 1, 0)
    while k:
        if k & 1:
            result = add(result, point)
        point, k = add(point, point), k >> 1
    return result


def decode(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * ROOT % P
    if (x * x - x2) % P or y >= P or (x == 0 and sign):
        raise ValueError("not a point")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def signed(public, message, signature):
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    k = int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % L
    left, right = times(s, BASE), add(decode(r), times(k, decode(public)))
    same = (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0
    return len(signature) == 64 and s < L and same


def root_of(body, index, size, path):
    """RFC 9162, section 2.1.3.2: from an event's bytes up to the root."""
    node, last = hashlib.sha256(b"\x00" + body).digest(), size - 1
    for sibling in map(bytes.fromhex, path):
        if index & 1 or index == last:
            node = hashlib.sha256(b"\x01" + sibling + node).digest()
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            node = hashlib.sha256(b"\x01" + node + sibling).digest()
        index, last = index >> 1, last >> 1
    return node if last == 0 else None


def check(proof, key):
    """The events of the item, if the proof holds; ValueError if it does not."""
    text, _, signatures = proof["checkpoint"].partition("\n\n")
    public = base64.b64decode(key.strip().split("+", 2)[2])[1:]
    raw = [base64.b64decode(line.split(" ")[2]) for line in signatures.splitlines()]
    if not any(signed(public, (text + "\n").encode(), signature[4:]) for signature in raw):
        raise ValueError("the checkpoint is not signed by this key")
    size, root = int(text.split("\n")[1]), base64.b64decode(text.split("\n")[2])
    for entry in proof["events"] + proof["context"]:
        body = entry["event"].encode()
        if root_of(body, json.loads(body)["seq"] - 1, size, entry["path"]) != root:
            raise ValueError("an event is not under the signed root")
    events = [json.loads(entry["event"]) for entry in proof["events"]]
    if not events or any((e["batch"], e["item"]) != (proof["batch"], proof["item"]) for e in events):
        raise ValueError("an event is about another item")
    return events


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        found = check(json.load(open(sys.argv[1])), open(sys.argv[2]).read().splitlines()[-1])
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OSError) as error:
        sys.exit(f"the proof does not hold: {error if isinstance(error, (ValueError, OSError)) else repr(error)}")
    print(f"the proof holds: {len(found)} events of item {found[0]['item']} of batch {found[0]['batch']}")
    for event in found:
        told = (event.get(name) for name in ("type", "code", "billed", "billed_currency", "reference"))
        print(event["seq"], event["at"], *(text for text in told if text is not None))
