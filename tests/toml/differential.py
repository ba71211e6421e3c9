# SPDX-License-Identifier: Apache-2.0
"""Compares our TOML reader with Python's tomllib on generated and mutated documents.

usage: differential.py TOML-JSON [COUNT [SEED]]

Makes COUNT documents of each class: valid ones, ones that define the same few names over and over,
and mutations of both. Each document is read by both readers; they must agree whether it is valid,
and on every value. Each valid one is also written by our writer and read again, with the same
values. All randomness comes from SEED, so that a failure can be repeated.

Where the two are allowed to differ is written down in explain(), each case with its reason.
"""

import datetime
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import threading
import tomllib

BOM = b"\xef\xbb\xbf"


# --- Generating ------------------------------------------------------------------------------

BARE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
TEXT = BARE + " \t.,:;=#[]{}()'/\\\"äß€漢😀\u200b\u202e\x00\x1b\x7f\x85"
SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.newline = "\n"

    def chance(self, p):
        return self.rng.random() < p

    def blank(self):
        return self.rng.choice(["", "", " ", "  ", "\t"])

    def text(self, extra=""):
        alphabet = TEXT + extra
        return "".join(self.rng.choice(alphabet) for _ in range(self.rng.randrange(12)))

    def escape(self, c):
        if c in SHORT and self.chance(0.9):
            return SHORT[c]
        if ord(c) < 0x10000 and self.chance(0.7):
            return "\\u%04x" % ord(c)
        return "\\U%08X" % ord(c)

    def basic(self, s, multi=False):
        out = []
        for c in s:
            control = (ord(c) < 0x20 and c != "\t") or c == "\x7f"
            if multi and c == "\n":
                out.append(self.newline)
            elif control or c in '"\\' or self.chance(0.05):
                out.append(self.escape(c))
            else:
                out.append(c)
        return "".join(out)

    def literal(self, s, multi=False):
        s = "".join(c for c in s if (ord(c) >= 0x20 or c in "\t\n") and c not in "\x7f'")
        return s.replace("\n", self.newline if multi else "")

    def string(self):
        form = self.rng.randrange(4)
        if form == 0:
            return '"' + self.basic(self.text()) + '"'
        if form == 1:
            return "'" + self.literal(self.text()) + "'"
        first = self.rng.choice(["", self.newline])
        if form == 2:
            body = self.basic(self.text("\n\n"), True)
            if self.chance(0.3):
                body += "\\" + self.blank() + self.newline + self.blank() + self.newline
                body += self.blank() + "x"
            return '"""' + first + body + self.rng.choice(["", "", '"', '""']) + '"""'
        body = self.literal(self.text("\n\n"), True)
        return "'''" + first + body + self.rng.choice(["", "", "'", "''"]) + "'''"

    def digits(self, alphabet, n):
        s = "".join(self.rng.choice(alphabet) for _ in range(n))
        return "".join(c + ("_" if self.chance(0.1) and i + 1 < len(s) else "")
                       for i, c in enumerate(s))

    def whole(self):
        n = self.rng.choice([0, 1, 9, 10, 99, 4096, 2**31, 2**53 + 1, 2**63 - 1])
        if self.chance(0.5):
            n = self.rng.randrange(10**self.rng.randrange(1, 18))
        s = str(n)
        return "_".join([s[:1], s[1:]]) if len(s) > 1 and self.chance(0.2) else s

    def integer(self):
        form = self.rng.randrange(5)
        if form == 0:
            return "0x" + self.digits("0123456789abcdefABCDEF", self.rng.randrange(1, 16))
        if form == 1:
            return "0o" + self.digits("01234567", self.rng.randrange(1, 21))
        if form == 2:
            return "0b" + self.digits("01", self.rng.randrange(1, 63))
        if form == 3 and self.chance(0.1):
            return "-9223372036854775808"
        return self.rng.choice(["", "+", "-"]) + self.whole()

    def float(self):
        sign = self.rng.choice(["", "+", "-"])
        if self.chance(0.15):
            return sign + self.rng.choice(["inf", "nan"])
        s = sign + self.whole()
        fraction = self.chance(0.7)
        if fraction:
            s += "." + self.digits("0123456789", self.rng.randrange(1, 20))
        if not fraction or self.chance(0.4):
            s += self.rng.choice("eE") + self.rng.choice(["", "+", "-"])
            s += self.digits("0123456789", self.rng.randrange(1, 4))
        return s

    def date(self):
        year = self.rng.choice([1, 1970, 1900, 2000, 2024, 9999, self.rng.randrange(1, 10000)])
        month = self.rng.randrange(1, 13)
        last = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
        if month == 2 and (year % 4 == 0 and year % 100 != 0 or year % 400 == 0):
            last = 29
        return "%04d-%02d-%02d" % (year, month, self.rng.choice([1, last]))

    def time(self):
        s = "%02d:%02d:%02d" % (self.rng.choice([0, 23, 12]), self.rng.choice([0, 59]),
                                self.rng.choice([0, 59, 30]))
        if self.chance(0.4):
            s += "." + "".join(self.rng.choice("0123456789")
                               for _ in range(self.rng.randrange(1, 12)))
        return s

    def datetime(self):
        form = self.rng.randrange(4)
        if form == 0:
            return self.date()
        if form == 1:
            return self.time()
        s = self.date() + self.rng.choice("Tt ") + self.time()
        if form == 3:
            offset = self.rng.choice("+-") + "%02d:%02d" % (self.rng.randrange(24),
                                                            self.rng.randrange(60))
            s += self.rng.choice(["Z", "z", offset])
        return s

    def array(self, depth):
        def gap():
            s = self.blank()
            while self.chance(0.15):
                s += self.rng.choice(["", "# " + self.literal(self.text())]) + self.newline
                s += self.blank()
            return s
        items = [self.value(depth + 1) for _ in range(self.rng.randrange(4))]
        s = ",".join(gap() + item + gap() for item in items)
        if items and self.chance(0.3):
            s += "," + gap()
        return "[" + s + (gap() if not items else "") + "]"

    def inline(self, depth):
        names = self.names(self.rng.randrange(4))
        pairs = [self.blank() + self.dotted(name) + self.blank() + "=" + self.blank() +
                 self.value(depth + 1) + self.blank() for name in names]
        return "{" + (",".join(pairs) or self.blank()) + "}"

    def value(self, depth=0):
        kind = self.rng.randrange(8 if depth > 3 else 10)
        if kind < 2:
            return self.string()
        if kind < 4:
            return self.integer()
        if kind < 5:
            return self.float()
        if kind < 7:
            return self.datetime()
        if kind < 8:
            return self.rng.choice(["true", "false"])
        return self.array(depth) if kind == 8 else self.inline(depth)

    def key(self, s):
        forms = []
        if s and all(c in BARE for c in s):
            forms.append(s)
        if all((ord(c) >= 0x20 or c == "\t") and c not in "'\x7f" for c in s):
            forms.append("'" + s + "'")
        forms.append('"' + self.basic(s) + '"')
        return self.rng.choice(forms)

    def names(self, n):
        """N different names, none a prefix of another as a dotted key."""
        out = {}
        for _ in range(n):
            out["%s%d" % (self.text(), len(out))] = None
        return list(out)

    def dotted(self, name):
        parts = [name]
        while self.chance(0.2):
            parts.append(self.text())
        dot = self.blank() + "." + self.blank()
        return dot.join(self.key(p) for p in parts)

    def lines(self, names):
        out = []
        for name in names:
            if self.chance(0.1):
                out.append(self.blank() + "#" + self.literal(self.text()))
            if self.chance(0.1):
                out.append(self.blank())
            line = self.blank() + self.dotted(name) + self.blank() + "=" + self.blank()
            line += self.value() + self.blank()
            out.append(line + (self.rng.choice(["", "#x"]) if self.chance(0.2) else ""))
        return out

    def valid(self):
        self.newline = self.rng.choice(["\n", "\n", "\n", "\r\n"])
        names = self.names(self.rng.randrange(8))
        headers, plain = names[:len(names) // 2], names[len(names) // 2:]
        out = self.lines(plain)
        for name in headers:
            elements = self.rng.choice([0, 0, 0, 1, 2])
            for _ in range(max(elements, 1)):
                key = self.blank() + self.dotted(name) + self.blank()
                if elements:
                    key = self.blank() + self.key(name) + self.blank()
                out.append(self.blank() + ("[[" + key + "]]" if elements else "[" + key + "]"))
                out += self.lines(self.names(self.rng.randrange(4)))
        text = self.newline.join(out) + self.rng.choice(["", self.newline])
        return text.encode()

    def colliding(self):
        """Few names, so that tables are met, reopened and redefined in every way."""
        def path(most):
            return ".".join(self.rng.choice("abc") for _ in range(self.rng.randrange(1, most + 1)))

        def value():
            return self.rng.choice(["1", "1", "[]", "{}", "[{}]", "{%s=1}" % path(2),
                                    "{%s=1,%s={}}" % (path(2), path(2)), "[{%s=1}]" % path(2)])
        out = []
        for _ in range(self.rng.randrange(1, 8)):
            kind = self.rng.randrange(4)
            if kind == 0:
                out.append("[%s]" % path(3))
            elif kind == 1:
                out.append("[[%s]]" % path(3))
            else:
                out.append("%s=%s" % (path(3), value()))
        return "\n".join(out).encode()

    SPICE = [b'"', b"'", b'"""', b"'''", b"[", b"]", b"{", b"}", b"=", b".", b",", b"#", b"\n",
             b"\r", b"\r\n", b"\\", b"\\u00", b"\\x41", b"\\e", b"\0", b"\x7f", b"\x80", b"\xff",
             b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", BOM, b"\xe2\x80\xa8", b"_", b"-",
             b"+", b"0", b"9", b"e", b"x", b"T", b"Z", b":", b" ", b"\t", b"true", b"inf", b"nan",
             b"1979-05-27", b"07:32:00", b"0x", b"[[", b"]]", b"60", b"24", b"00", b"\\\n", b"\f"]

    def mutated(self, data):
        data = bytearray(data)
        for _ in range(self.rng.choice([1, 1, 1, 2, 4])):
            at = self.rng.randrange(len(data) + 1)
            kind = self.rng.randrange(6)
            if kind == 0:
                data[at:at] = self.rng.choice(self.SPICE)
            elif kind == 1:
                del data[at:at + self.rng.choice([1, 1, 2, 5])]
            elif kind == 2 and data:
                data[at % len(data)] = self.rng.randrange(256)
            elif kind == 3:
                end = self.rng.randrange(at, len(data) + 1)
                data[at:at] = data[at:end][:200]
            elif kind == 4:
                data[at:at + 1] = self.rng.choice(self.SPICE)
            elif kind == 5 and self.chance(0.2):
                del data[at:]
        return bytes(data)


# --- Reading ---------------------------------------------------------------------------------

def read_tomllib(data):
    """(True, value) or (False, reason)."""
    try:
        return True, tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValueError) as e:
        return False, str(e)


def run_batch(program, mode, documents):
    """Our answers, (valid, tree or reason) for each document."""
    wrapper = os.environ.get("MESON_EXE_WRAPPER", "").split()  # qemu, in cross-builds
    child = subprocess.Popen([*wrapper, program, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def feed():
        try:
            for data in documents:
                child.stdin.write(struct.pack("<I", len(data)) + data)
            child.stdin.close()
        except BrokenPipeError:
            pass
    feeder = threading.Thread(target=feed)
    feeder.start()
    answers = []
    for data in documents:
        head = child.stdout.read(5)
        if len(head) != 5:
            child.wait()
            feeder.join()
            sys.exit("toml-json ended (%d) at document %d: %r" %
                     (child.returncode, len(answers), data))
        status, size = struct.unpack("<BI", head)
        body = child.stdout.read(size).decode()
        answers.append((True, json.loads(body)) if status == 0 else (False, body))
    feeder.join()
    if child.wait() != 0:
        sys.exit("toml-json failed with status %d" % child.returncode)
    return answers


def parse_date_time(text):
    # tomllib keeps six digits of a fraction; ours keeps the text. Reason: datetime holds no more.
    text = re.sub(r"(\.\d{6})\d+", r"\1", text)
    text = re.sub(r"\.(\d+)", lambda m: "." + m[1].ljust(6, "0"), text)
    return text


def untag(v):
    """Tagged JSON as the Python values that tomllib makes."""
    if isinstance(v, list):
        return [untag(x) for x in v]
    if not (set(v) == {"type", "value"} and isinstance(v["value"], str)):
        return {k: untag(x) for k, x in v.items()}
    kind, text = v["type"], v["value"]
    if kind == "string":
        return text
    if kind == "integer":
        return int(text)
    if kind == "float":
        return float(text)
    if kind == "bool":
        return {"true": True, "false": False}[text]
    if kind == "date-local":
        return datetime.date.fromisoformat(text)
    if kind == "time-local":
        return datetime.time.fromisoformat(parse_date_time(text))
    parsed = datetime.datetime.fromisoformat(parse_date_time(text).replace("Z", "+00:00"))
    if (parsed.tzinfo is None) != (kind == "datetime-local"):
        raise ValueError("wrong kind %s for %s" % (kind, text))
    return parsed


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, float):
        both_nan = math.isnan(a) and math.isnan(b)
        return (both_nan or a == b) and math.copysign(1, a) == math.copysign(1, b)
    if isinstance(a, datetime.datetime):
        return a == b and a.utcoffset() == b.utcoffset()
    return a == b


# --- Judging ---------------------------------------------------------------------------------

def explain(data, ours, theirs):
    """The name of the documented difference that DATA shows, or None."""
    # TOML is silent about a byte order mark; toml-test has it among its valid documents and
    # editors on Windows write it, so we skip one at the start. tomllib refuses it.
    if data.startswith(BOM) and not theirs[0]:
        again = read_tomllib(data[len(BOM):])
        if ours[0] == again[0] and (not ours[0] or same(untag(ours[1]), again[1])):
            return "byte order mark"
        data, theirs = data[len(BOM):], again
    # "If an integer cannot be represented losslessly, an error must be thrown": ours has 64 bits,
    # Python any number.
    if theirs[0] and not ours[0] and ours[1].endswith("does not fit in 64 bits"):
        return "integer beyond 64 bits"
    # A limit of ours; Python's own recursion ends near 1000.
    if theirs[0] and not ours[0] and ours[1].endswith("nesting is deeper than 128 levels"):
        return "nesting"
    return None


def judge(data, ours, theirs):
    """None if both agree, else (is_allowed, text)."""
    if ours[0] == theirs[0] and (not ours[0] or same(untag(ours[1]), theirs[1])):
        return None
    reason = explain(data, ours, theirs)
    if reason:
        return True, reason
    return False, "%r\n  ours:    %r\n  tomllib: %r" % (data, ours, theirs)


def known_documents():
    """Corners that chance meets too rarely."""
    deep = b"a=" + b"[" * 127 + b"]" * 127
    return [
        b"", b"\n", b"#", b"a=1", b"a=1\r\n", b"a=1\r", b"\r", BOM, BOM + b"a=1", BOM + BOM + b"a=1",
        b"a=1" + BOM, b"\xff\xfea\x00=\x001\x00", b"a = 9223372036854775807",
        b"a = 9223372036854775808", b"a = -9223372036854775808", b"a = -9223372036854775809",
        b"a = 0x7fffffffffffffff", b"a = 0x8000000000000000", b"a = 1e400", b"a = -1e-400",
        b"a = 0000-01-01", b"a = 2023-02-29", b"a = 2024-02-29", b"a = 1900-02-29",
        b"a = 2016-12-31T23:59:60Z", b"a = 2016-12-31T23:59:61Z", b"a = 24:00:00", b"a = 12:00",
        b"a = 2020-01-01T12:00:00+24:00", b"a = 2020-01-01T12:00:00+23:59",
        b"a = 2020-01-01T12:00:00+12:60", b"a = 2020-01-01T", b"a = 2020-01-01 ",
        b"a = 2020-01-01 #x", b"a = 2020-01-01 12:00:00", b"a = 2020-01-01  12:00:00",
        b"a = 12:00:00Z", b"a = 12:00:00.", b"a = 12:00:00.1_0", b"a = 1979-05-27T07:32:00.999999Z",
        deep, b"a=" + b"[" * 128 + b"]" * 128, b"[" + b".".join([b"a"] * 127) + b"]",
        b"[" + b".".join([b"a"] * 128) + b"]", b".".join([b"a"] * 128) + b"=1",
        b".".join([b"a"] * 129) + b"=1",
        b"[a.b.c]\nz=1\n[a]\nb.x=1", b"[a.b.c]\nz=1\n[a]\nb.c.x=1", b"[[a.b]]\n[a]\nb.y=2",
        b"[a.b.c]\n[a]\nb.x=1\n[a.b]", b"[a.b.c]\n[a]\nb.x=1\nb.y=2\n[a.b.d]",
        b"a.b=1\n[a]", b"a.b=1\n[a.c]", b"a.b.c=1\n[a.b]", b"[a]\nb.c=1\n[a.b]", b"[a.b]\n[a]\n[a]",
        b"[[a]]\n[a.b]\n[[a]]\n[a.b]", b"[a]\n[[a.b]]\n[[a.b]]", b"a=[]\n[[a]]", b"a={}\n[a.b]",
        b"a={b.c=1}\n[a.b]", b"a={b.c=1, b.d=2}", b"a={b={}, b.c=1}", b"a={b.c=1, b={}}",
        b"[a.b]\n[[a]]", b"[[a]]\n[a]", b"a=[{}]\n[a.b]", b"[fruit]\napple.color=1\n[fruit.apple.x]",
        b"[fruit]\napple.color=1\n[fruit.apple]", b"a = {x=1,}", b"a = {x=1\n}", b"a = [1,]",
        b"a = [,]", b"a = [1,,2]", b"a = [1 2]", b"a = {,}", b"''=1", b'""=1', b"=1", b"a.=1",
        b".a=1", b"a..b=1", b"a . b = 1", b"[ a . b ]", b"[]", b"[a.]", b"[a] b=1", b"[a]#x",
        b"[[a]", b"[[a] ]", b"[ [a]]", b"a = 1 b = 2", b'a = """x"""""', b'a = """x""""""',
        b"a = '''x'''''", b"a = '''x''''''", b'a = """\\\n  x"""', b'a = """\\  \n\n  x"""',
        b'a = """x\\ y"""', b'a = """\\"""', b'a = "\\\n"', b'"""a"""=1', b"'''a'''=1",
        b'a = "\\ud800"', b'a = "\\U00110000"', b'a = "\\u0000"', b'a = "\\x41"', b'a = "\\e"',
        b'a = "x\ty"', b"a = 'x\ty'", b"a = 'x\x01'", b"# \x01", b"# \x7f", b"# \xc2\x85",
        b'a = """x\r\ny"""', b'a = """x\ry"""', b"a = '''\r\nx'''", b"a = 1_000", b"a = 1__0",
        b"a = _1", b"a = 1_", b"a = 0_0", b"a = 00", b"a = -0", b"a = +0", b"a = +0x1", b"a = 0x",
        b"a = 0x_1", b"a = 0X1", b"a = 1.", b"a = .1", b"a = 1.e1", b"a = 1e", b"a = 1e+_1",
        b"a = 1e1.0", b"a = 01e1", b"a = 0e1", b"a = 1_0e1_0", b"a = 1._0", b"a = infinity",
        b"a = Inf", b"a = +-1", b"a = True", b"a = truely", b"a = true1", b"a = 'x' 'y'",
        b"1.2=3", b"1=2", b"-=1", b"_=1", b"2020-01-01=1", b"inf=1", b"true=1", "ä=1".encode(),
        b"a = \xe2\x80\xa81", b"a\xc2\xa0=1", b"a = @", b"a = ", b"a", b"a b = 1",
    ]


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20260131
    gen = Generator(random.Random(seed))

    valid = [gen.valid() for _ in range(count)]
    colliding = [gen.colliding() for _ in range(count)]
    mutated = [gen.mutated(d) for d in valid] + [gen.mutated(d) for d in colliding]
    documents = known_documents() + valid + colliding + mutated
    n_known = len(documents) - len(valid) - len(colliding) - len(mutated)

    theirs = [read_tomllib(d) for d in documents]
    ours = run_batch(program, "--batch", documents)
    failures, allowed = [], {}
    for i, data in enumerate(documents):
        verdict = judge(data, ours[i], theirs[i])
        if verdict and verdict[0]:
            allowed[verdict[1]] = allowed.get(verdict[1], 0) + 1
        elif verdict:
            failures.append(verdict[1])
        elif n_known <= i < n_known + count and not ours[i][0]:
            failures.append("%r\n  should be valid: %s" % (data, ours[i][1]))
        if not ours[i][0] and not re.fullmatch(r"standard input:\d+: [^\x00-\x1f\x7f]+", ours[i][1]):
            failures.append("%r\n  message of the wrong form: %r" % (data, ours[i][1]))

    accepted = [(d, o) for d, o in zip(documents, ours) if o[0]]
    again = run_batch(program, "--batch-rewrite", [d for d, _ in accepted])
    for (data, before), after in zip(accepted, again):
        if not after[0] or not same(untag(before[1]), untag(after[1])):
            failures.append("%r\n  read:      %r\n  rewritten: %r" % (data, before, after))

    print("%d documents, %d valid; seed %d" % (len(documents), len(accepted), seed))
    for reason, n in sorted(allowed.items()):
        print("  %d differ as documented: %s" % (n, reason))
    for text in failures[:20]:
        print("FAILED " + text)
    if failures:
        sys.exit("%d failures" % len(failures))


if __name__ == "__main__":
    main()
