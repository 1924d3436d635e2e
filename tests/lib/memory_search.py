"""Looks for a text in the memory of processes, and in files, in every form in which it could lie there."""
import base64
import os
import pathlib
import struct

PAGE = os.sysconf("SC_PAGE_SIZE")
PIECE = 16 << 20


def forms_of(text):
    """As it is, in base64 wherever it begins, hexadecimal, UTF-16, backwards."""
    raw = text.encode()
    out = {"plain": raw, "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode(), "utf-16": text.encode("utf-16-le"),
           "backwards": raw[::-1]}
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        # Characters that depend on what stands before and behind are left out.
        out[f"base64+{shift}"] = whole[(shift * 8 + 5) // 6:len(whole) // 4 * 4 - 4]
    return out


class Search:
    def __init__(self, text, only=None):
        self.forms = {name: form for name, form in forms_of(text).items() if only in (None, name)}
        self.overlap = max(map(len, self.forms.values())) - 1

    def in_bytes(self, pieces):
        """The names of the forms that are in a stream."""
        found, rest = set(), b""
        for piece in pieces:
            rest += piece
            found |= {name for name, form in self.forms.items() if form in rest}
            rest = rest[-self.overlap:]
        return found

    def in_file(self, path):
        def pieces():
            with open(path, "rb") as file:
                while piece := file.read(PIECE):
                    yield piece
        return self.in_bytes(pieces())

    def in_memory(self, pid):
        """Of a process: what of its address space has ever been touched. Returns the forms, and how many bytes it saw."""
        found, seen = set(), 0
        with open(f"/proc/{pid}/mem", "rb", 0) as memory, open(f"/proc/{pid}/pagemap", "rb", 0) as pagemap:
            for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
                begin, end = (int(part, 16) for part in line.split()[0].split("-"))
                if line.endswith(("[vvar]", "[vsyscall]")):
                    continue
                pieces = list(self.touched(memory, pagemap, begin, end))
                seen += sum(map(len, pieces))
                found |= self.in_bytes(pieces)
        return found, seen

    @staticmethod
    def touched(memory, pagemap, begin, end):
        for start in range(begin, end, PIECE):
            stop = min(start + PIECE, end)
            entries = os.pread(pagemap.fileno(), (stop - start) // PAGE * 8, start // PAGE * 8)
            # Bits 63 and 62: in memory, or swapped out (Documentation/admin-guide/mm/pagemap.rst).
            there = [entry >> 62 != 0 for entry, in struct.iter_unpack("<Q", entries)]
            at = 0
            while at < len(there):
                run = at
                while run < len(there) and there[run] == there[at]:
                    run += 1
                if there[at]:
                    try:
                        yield os.pread(memory.fileno(), (run - at) * PAGE, start + at * PAGE)
                    except OSError:  # a device's, such as a guest's firmware that was taken away
                        pass
                at = run
