#!/usr/bin/env python3
"""Invariant 11, from the container: tricks by which code could run without its bytes in the record. Each is held against
the bytes that ran: they are kept, or something was counted as lost; none runs in silence, and nothing false is said."""
import hashlib
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402

MANIFEST = """
workspace: {entries: {repo: {type: git_repo, repo: "."}}}
limits: {memory: 512MiB, disk: 1GiB, cpus: %d}
rating: 10m
"""

# What the tricks stand on. None of it has the code itself; and what it opens has no name like a program's.
HELP = r'''
import ctypes, os, pty, signal, socket, struct, subprocess, sys, threading, time, traceback
libc = ctypes.CDLL(None, use_errno=True)
HERE = "/workspace/repo/"
TRICKS = []
def trick(function):
    TRICKS.append(function)
    return function
def read(name):
    with open(HERE + name, "rb") as file: return file.read()
def put(path, content, mode=0o644):
    with open(path, "wb") as file: file.write(content)
    os.chmod(path, mode)
    return path
def run(*words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, **more).stdout
def piped(name, *words, **more):
    """With the file as what comes by a pipe."""
    return run(*words, input=read(name), **more)
def in_memory(content, name="m"):
    memory = os.memfd_create(name, 0)
    os.write(memory, content)
    os.lseek(memory, 0, 0)
    return memory
def spawn(fd, *words):
    """Without the pipe that subprocess has open meanwhile."""
    put("/tmp/spawned", b"")
    out = os.open("/tmp/spawned", os.O_WRONLY)
    actions = [(os.POSIX_SPAWN_DUP2, fd, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
    return os.posix_spawn(words[0], words, {}, file_actions=actions)
def over(pid):
    os.waitpid(pid, 0)
    return open("/tmp/spawned", "rb").read()
def fifo(name):
    os.mkfifo(name)
    return name
def library():
    """A shared library that says what it is told to; not named as one."""
    if not os.path.exists("/tmp/built"):
        put("/tmp/lib.c", b'#include <unistd.h>\n__attribute__((constructor)) static void f(void) '
            b'{ if (write(1, "ran_LIBRARY", 11)) {} }\n')
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", "/tmp/built", "/tmp/lib.c"], check=True)
    return open("/tmp/built", "rb").read()
def main(names):
    for function in TRICKS:
        if names and function.__name__ not in names: continue
        try:
            out = function(function.__name__)
        except Exception:
            out = traceback.format_exc().encode()
        print("@@", function.__name__, (out or b"").decode(errors="replace")[-700:].replace("\n", "|"), flush=True)
'''

LOADER = "/lib64/ld-linux-x86-64.so.2"
SHELL = "echo ran_{0} # by a shell\n"
PYTHON = "print('ran_{0}') # by python\n"
PERL = 'print "ran_{0}"; # by perl\n'
AWK = 'BEGIN {{ print "ran_{0}" }} # by awk\n'
SED = "s/.*/ran_{0}/ # by sed\n"

# name: (the code, which lies in a file of that name; the trick)
CODE = {
    "control_file": (PYTHON, "return run('python3', HERE + me)"),
    "control_pipe": (SHELL, "return piped(me, 'sh')"),
    "loader_shell": (SHELL, f"return run('{LOADER}', '/usr/bin/dash', HERE + me)"),
    "loader_stdin": (SHELL, f"return piped(me, '{LOADER}', '/usr/bin/dash')"),
    "loader_python": (PYTHON, f"return run('{LOADER}', '/usr/bin/python3.11', HERE + me)"),
    "perl_by_its_other_name": (PERL, "return run('perl5.36-x86_64-linux-gnu', HERE + me)"),
    "sourced_with_a_zero_byte": ("# \0\n" + SHELL, "return run('bash', '-c', '. ' + HERE + me)"),
    "run_by_bash_with_a_zero_byte": (
        "\n# \0\n" + SHELL, "put('/tmp/zero', read(me), 0o755); return run('bash', '-c', '/tmp/zero; true')"),
    "awk_from_stdin": (AWK, "return piped(me, 'awk', '-f', '-')"),
    "awk_exec": (AWK, "return run('mawk', '-W', 'exec', HERE + me)"),
    "sed_from_stdin": (SED, "return piped(me, 'sed', '-f', '-', '/proc/self/comm')"),
    "sed_options_behind": (SED, "return run('sed', '/proc/self/comm', '-f', HERE + me)"),
    "sed_short_long_option": (SED, "return run('sed', '--fil=' + HERE + me, '/proc/self/comm')"),
    "bash_norc": (SHELL, "return piped(me, 'bash', '-norc')"),
    "bash_plus_s": (SHELL, "return piped(me, 'bash', '+s', 'x')"),
    "python_x_stdin": (PYTHON, "return piped(me, 'python3', '-Ximporttime')"),
    "python_x_file": (PYTHON, "return run('python3', '-Wignore::ImportWarning', HERE + me)"),
    "python_m_profile": (PYTHON, "return run('python3', '-m', 'cProfile', HERE + me)"),
    "pdb": (PYTHON, "return run('pdb3', '-c', 'c', '-c', 'q', HERE + me)"),
    "python_m_code": (PYTHON, "return piped(me, 'python3', '-m', 'code')"),
    "python_i_after_c": (PYTHON, "return piped(me, 'python3', '-i', '-c', 'pass')"),
    "bash_after_a_failed_exec": (
        SHELL, "put('/tmp/broken', open('/bin/true', 'rb').read()[:100], 0o755)\n"
        "return run('bash', input=b'shopt -s execfail; exec /tmp/broken\\n' + read(me))"),
    "bash_after_a_failed_exec_of_python": (
        SHELL, "os.makedirs('/tmp/b', exist_ok=True); put('/tmp/b/python3', open('/bin/true', 'rb').read()[:100], 0o755)\n"
        "return run('bash', input=b'shopt -s execfail; exec /tmp/b/python3\\n' + read(me))"),
    "python_of_a_descriptor": (
        PYTHON, "fd = os.open(HERE + me, os.O_RDONLY); return run('python3', f'/proc/self/fd/{fd}', pass_fds=[fd])"),
    "python_of_dev_fd": (
        PYTHON, "fd = os.open(HERE + me, os.O_RDONLY); return run('python3', f'/dev/fd/{fd}', pass_fds=[fd])"),
    "python_by_proc_cwd": (PYTHON, "return run('python3', '/proc/self/cwd/' + me + '/../' + me, cwd=HERE)"
                           " if False else run('python3', '/proc/self/root' + HERE + '../repo/' + me)"),
    "python_in_a_deep_folder": (
        PYTHON, "os.chdir('/tmp')\nfor n in range(25): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
        "os.mkdir('tmp'); put('tmp/x.py', read(me)); put('/tmp/x.py', b'# another\\n')\n"
        "out = run('python3', 'tmp/x.py'); os.chdir('/'); return out"),
    "link_in_a_folder_named_deleted": (
        PYTHON, "os.mkdir('/tmp/f (deleted)'); os.symlink(HERE + me, '/tmp/f (deleted)/other')\n"
        "os.mkdir('/tmp/f'); put('/tmp/f/other', b'# another\\n')\n"
        "return run('python3', 'other', cwd='/tmp/f (deleted)')"),
    "file_taken_for_a_fifo": (
        SHELL, "os.makedirs('/tmp/q/a/b'); os.symlink('/tmp/q/a/b', '/tmp/q/l'); put('/tmp/q/p', b'# nothing\\n')\n"
        "fifo('/tmp/q/l/../p'); put('/tmp/q/p', read(me)); return run('sh', '/tmp/q/p')"),
    "memory_sourced": (
        SHELL, "fd = in_memory(read(me)); return run('dash', '-c', f'. /proc/self/fd/{fd}', pass_fds=[fd])"),
    "fifo_sourced": (
        SHELL, "subprocess.Popen(['cp', HERE + me, fifo('/tmp/fs')]); return run('bash', '-c', '. /tmp/fs')"),
    "substitution_sourced": (SHELL, "return run('bash', '-c', 'source <(cat ' + HERE + me + ')')"),
    "fifo_by_a_link": (
        PERL, "fifo('/tmp/fl'); os.symlink('/tmp/fl', '/tmp/fl2'); subprocess.Popen(['cp', HERE + me, '/tmp/fl'])\n"
        "return run('perl', '/tmp/fl2')"),
    "terminal_as_script": (
        SHELL, "leader, follower = pty.openpty(); os.write(leader, read(me) + b'\\4')\n"
        "return run('sh', os.ttyname(follower))"),
    "appended_while_it_runs": (
        SHELL, "put('/tmp/ap', b'read x < /tmp/ap_go\\n'); fifo('/tmp/ap_go')\n"
        "p = subprocess.Popen(['sh', '/tmp/ap'], stdout=subprocess.PIPE); time.sleep(0.5)\n"
        "f = open('/tmp/ap', 'ab'); f.write(read(me)); f.flush()\n"
        "put2 = os.open('/tmp/ap_go', os.O_WRONLY); os.write(put2, b'\\n'); out = p.communicate()[0]\n"
        "f.truncate(20); return out"),
    "changed_behind_what_is_read": (
        SHELL, "put('/tmp/cb', b'read x < /tmp/cb_go\\n'.ljust(8191, b'#') + b'\\n' + b'#' * 300 + b'\\n'); fifo('/tmp/cb_go')\n"
        "p = subprocess.Popen(['sh', '/tmp/cb'], stdout=subprocess.PIPE); time.sleep(0.5)\n"
        "f = open('/tmp/cb', 'r+b'); f.seek(8192); f.write(read(me)); f.flush()\n"
        "go = os.open('/tmp/cb_go', os.O_WRONLY); os.write(go, b'\\n'); out = p.communicate()[0]\n"
        "f.seek(8192); f.write(b'#' * 100); return out"),
    "appended_after_a_decoy": (
        SHELL, "put('/tmp/ad', b'[ -n \"$1\" ] || read x < /tmp/ad_go\\n'); fifo('/tmp/ad_go')\n"
        "p = subprocess.Popen(['sh', '/tmp/ad'], stdout=subprocess.PIPE); time.sleep(0.5); run('sh', '/tmp/ad', 'decoy')\n"
        "f = open('/tmp/ad', 'ab'); f.write(read(me)); f.close()\n"
        "go = os.open('/tmp/ad_go', os.O_WRONLY); os.write(go, b'\\n'); return p.communicate()[0]"),
    "appended_after_many": (
        SHELL, "put('/tmp/am', b'for i in $(seq 260); do echo \": $i\" > /tmp/am_i; . /tmp/am_i; done; . /tmp/am_last\\n')\n"
        "put('/tmp/am_last', b'read x < /tmp/am_go\\n'); fifo('/tmp/am_go')\n"
        "p = subprocess.Popen(['dash', '/tmp/am'], stdout=subprocess.PIPE)\n"
        "go = os.open('/tmp/am_go', os.O_WRONLY); time.sleep(0.2); f = open('/tmp/am_last', 'ab'); f.write(read(me)); f.close()\n"
        "os.write(go, b'\\n'); return p.communicate()[0]"),
    "environment_as_script": (SHELL, "return run('sh', '/proc/self/environ', env={'X': '\\n' + read(me).decode()})"),
    "function_in_the_environment": (
        SHELL, "return run('bash', '-c', 'f', env={'BASH_FUNC_f%%': '() { ' + read(me).decode() + '}'})"),
    "stdin_moved_back": (
        SHELL, "go = fifo('/tmp/sm_go'); put('/tmp/sm', read(me) + b'exit\\n' + b'read x < /tmp/sm_go\\n')\n"
        "fd = os.open('/tmp/sm', os.O_RDONLY); os.lseek(fd, len(read(me)) + 5, 0)\n"
        "pid = spawn(fd, '/bin/dash'); time.sleep(0.5); os.lseek(fd, 0, 0)\n"
        "w = os.open(go, os.O_WRONLY); os.write(w, b'\\n'); return over(pid)"),
    "stdin_exchanged_for_a_fifo": (
        SHELL, "go = fifo('/tmp/se_go'); put('/tmp/se', b'exec < /tmp/se_go\\n'); fd = os.open('/tmp/se', os.O_RDONLY)\n"
        "subprocess.Popen(['/bin/cp', HERE + me, go]); return over(spawn(fd, '/bin/bash'))"),
    "repl_in_a_child": (
        PYTHON, "head = b'import os\\nif os.fork(): os.wait(); os._exit(0)\\n\\n'\n"
        "return run('python3', '-i', input=head + (b'#' * 79 + b'\\n') * 200 + read(me))"),
    "perl_do": (PERL, "return run('perl', '-e', 'do $ARGV[0]', HERE + me)"),
    "python_run_path": (PYTHON, "return run('python3', '-c', 'import runpy, sys; runpy.run_path(sys.argv[1])', HERE + me)"),
    "python_startup": (PYTHON, "return run('python3', '-i', env={'PYTHONSTARTUP': HERE + me}, input=b'')"),
}

# Tricks with something else than the bytes of one file: what they are, and how they are looked at.
MORE = r'''
@trick
def library_of_any_name(me):
    put("/tmp/any", library().replace(b"ran_LIBRARY", b"ran_lib_any"))
    return run("/bin/true", env={"LD_PRELOAD": "/tmp/any"}) + b"\n" + run("sha256sum", "/tmp/any")
@trick
def library_loaded_by_python(me):
    put("/tmp/pyany", library().replace(b"ran_LIBRARY", b"ran_lib_pyt"))
    return run("python3", "-c", "import ctypes; ctypes.CDLL('/tmp/pyany')") + b"\n" + run("sha256sum", "/tmp/pyany")
@trick
def library_in_memory(me):
    content = library().replace(b"ran_LIBRARY", b"ran_lib_mem")
    fd = in_memory(content)
    return run("/bin/true", env={"LD_PRELOAD": f"/proc/self/fd/{fd}"}, pass_fds=[fd]) + b"\n" + \
        run("sha256sum", f"/proc/self/fd/{fd}", pass_fds=[fd])
@trick
def second_program_in_memory(me):
    env = in_memory(open("/usr/bin/env", "rb").read() + b"first")
    second = in_memory(open("/usr/bin/echo", "rb").read() + b"second")
    out = run(f"/proc/self/fd/{env}", f"/proc/self/fd/{second}", "ran_second", pass_fds=[env, second])
    return out + b"\n" + run("sha256sum", f"/proc/self/fd/{second}", pass_fds=[second])
@trick
def zip_of_any_name(me):
    import io, zipfile
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file: file.writestr("zipped.py", "print('ran_' + 'zip')\n")
    put("/tmp/zipany", data.getvalue())
    return run("python3", "-c", "import zipped", env={"PYTHONPATH": "/tmp/zipany"}) + b"\n" + run("sha256sum", "/tmp/zipany")
@trick
def zip_by_a_link_of_proc(me):
    import io, zipfile
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file: file.writestr("__main__.py", "print('ran_' + 'zipped')\n")
    put("/tmp/zipproc", data.getvalue())
    return run("python3", "/proc/self/cwd/zipproc", cwd="/tmp") + run("sha256sum", "/tmp/zipproc")
@trick
def long_stdin(me):
    put("/tmp/long", (b"#" * 1023 + b"\n") * (8 << 10) + b"echo ran_long\n")
    return run("sh", stdin=os.open("/tmp/long", os.O_RDONLY))
@trick
def removed_by_dots(me):
    os.makedirs("/tmp/r/a/b"); os.symlink("/tmp/r/a/b", "/tmp/r/l")
    put("/tmp/r/victim", b""); put("/tmp/r/a/victim", b"")
    os.unlink("/tmp/r/l/../victim")
    return b"ran_" + b" ".join(str(os.path.exists(p)).encode() for p in ("/tmp/r/victim", "/tmp/r/a/victim"))
@trick
def final_by_a_link(me):
    os.mkdir("/workspace/real"); os.symlink("real", "/workspace/link"); put("/workspace/first", b"the end")
    os.rename("/workspace/first", "/workspace/link/last"); os.unlink("/workspace/link")
    return b"ran_" + open("/workspace/real/last", "rb").read()
@trick
def written_deep(me):
    os.chdir("/workspace")
    for n in range(25): os.mkdir("e" * 200); os.chdir("e" * 200)
    put("deep_file", b"deep"); os.chdir("/")
    return b"ran_"
@trick
def named_deleted(me):
    put("/tmp/named", b"#!/bin/sh\necho harmless\n", 0o755)
    return run(put("/tmp/named (deleted)", b"#!/bin/sh\necho ran_named\n", 0o755))
@trick
def words_changed_by_ptrace(me):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1)
        libc.ptrace(0, 0, 0, 0)
        os.execv("/bin/sh", ["sh", "-c", "echo harmless_word"])
    os.waitpid(pid, 0)
    place = next(line for line in open(f"/proc/{pid}/maps") if "[stack]" in line).split()[0]
    start, end = (int(x, 16) for x in place.split("-"))
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(start); data = memory.read(end - start)
        memory.seek(start + data.rindex(b"echo harmless_word\0")); memory.write(b"echo ran_" + b"ptraced_x")
    libc.ptrace(17, pid, 0, 0)
    os.waitpid(pid, 0); os.close(writer)
    return os.read(reader, 100)
'''


def driver():
    text = HELP
    for name, (_, body) in CODE.items():
        text += f"@trick\ndef {name}(me):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return text + MORE + "main(sys.argv[1:])\n"


# What docs/evidence.md says cannot be had: that it is not there is held, too, so that the list stays true.
NOT_HAD = {"fifo_sourced", "substitution_sourced", "repl_in_a_child", "appended_while_it_runs", "changed_behind_what_is_read",
           "stdin_moved_back", "stdin_exchanged_for_a_fifo"}
# Each runs alone.
ALONE = {"stdin_moved_back", "stdin_exchanged_for_a_fifo", "appended_while_it_runs", "changed_behind_what_is_read", "words_changed_by_ptrace"}
OTHERS = ["library_of_any_name", "library_loaded_by_python", "library_in_memory", "second_program_in_memory",
          "zip_of_any_name", "zip_by_a_link_of_proc", "long_stdin", "removed_by_dots", "final_by_a_link", "written_deep", "named_deleted",
          "words_changed_by_ptrace"]


class Tricks(SandboxTest):
    limit = 900
    shared = {}  # what the runs left, by the tricks that ran in them

    def take(self, name, alone=False):
        """Runs the trick, all together in one sandbox or `alone`, and reads the record."""
        key = name if alone else ""
        if key not in self.shared:
            self.manifest(MANIFEST % 1)
            if not (self.work / ".git").exists():
                self.repository({name: code.format(name).encode() for name, (code, _) in CODE.items()} | {"work": driver()})
            together = [one for one in [*CODE, *OTHERS] if one not in ALONE]
            done = self.firestop("run", "--", "python3", "/workspace/repo/work", *([name] if alone else together), status=None)
            [folder] = sorted((self.state / "firestop" / "runs").glob("*/evidence"))[-1:]
            self.shared[key] = {
                "status": done.returncode, "kept": {path.name: path.read_bytes() for path in folder.glob("content/*/*")},
                "events": [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()],
                "out": {line.split()[1]: line for line in done.stdout.decode().splitlines() if line.startswith("@@ ")}}
            if "FIRESTOP_TRICKS" in os.environ:
                print(done.stdout.decode(), done.stderr.decode()[-300:], file=sys.stderr)
        for what, value in self.shared[key].items():
            setattr(self, what, value)
        self.assertEqual(self.status, 0)
        self.assertIn("ran_", self.out.get(name, ""), "the trick itself did not work")
        return self.out[name]

    def of(self, *kinds):
        return [event["data"] for event in self.events if event["kind"] in kinds]

    def has(self, code):
        """Other than as what the driver has open, which is no program of its own."""
        driver = {one["pid"] for one in self.of("code") if one["path"] == "/workspace/repo/work"}
        told = {one["digest"] for one in self.of("code")
                if "digest" in one and not (one["how"] == "opened" and one["pid"] in driver)}
        return any(code in self.kept[digest] for digest in told)

    def holds(self, name):
        self.take(name, name in ALONE)
        last = CODE[name][0].format(name).encode().splitlines()[-1]
        self.assertEqual(self.has(last), name not in NOT_HAD, f"{name}: it ran, in silence; or is had now")

    def holds_digest(self, name):
        digest = next(word for word in self.take(name).replace("|", " ").split() if len(word) == 64)
        self.assertIn(digest, self.kept, f"{name}: it ran, in silence")


class Inv11Tricks(Tricks):  # 75 s
    """Code that lies in a file or comes from one, code of another kind, and false words about it."""

    def test_inv11_code_of_a_file(self):
        for name in CODE:
            with self.subTest(name):
                self.holds(name)

    def test_inv11_library_of_any_name(self):
        self.holds_digest("library_of_any_name")

    def test_inv11_library_loaded_by_python(self):
        self.holds_digest("library_loaded_by_python")

    def test_inv11_library_in_memory(self):
        self.holds_digest("library_in_memory")

    def test_inv11_second_program_in_memory(self):
        self.holds_digest("second_program_in_memory")

    def test_inv11_zip_of_any_name(self):
        self.holds_digest("zip_of_any_name")

    def test_inv11_zip_by_a_link_of_proc(self):
        self.holds_digest("zip_by_a_link_of_proc")

    def test_inv11_long_stdin_has_its_end_or_a_note(self):
        self.take("long_stdin")
        large = [code for code in self.of("code") if code["how"] == "stdin" and code["size"] >= 8 << 20]
        self.assertTrue(self.has(b"echo ran_long\n") or any("cut" in code["note"] for code in large), large)

    def test_inv11_removed_by_dots(self):
        self.assertIn("ran_True False", self.take("removed_by_dots"))
        self.assertNotIn("/tmp/r/victim", [change["path"] for change in self.of("file.delete")])

    def test_inv11_final_by_a_link(self):
        self.take("final_by_a_link")
        self.assertIn("/workspace/real/last", [final["path"] for final in self.of("file.final")])

    def test_inv11_written_in_a_deep_folder(self):
        self.take("written_deep")
        self.assertTrue([w for w in self.of("file.write") if w["path"].endswith("deep_file")] or self.of("lost"))

    def test_inv11_a_name_that_ends_like_a_removed_one(self):
        self.take("named_deleted")
        told = {code["path"] for code in self.of("code") if code["path"].startswith("/tmp/named")}
        self.assertEqual(told, {"/tmp/named (deleted)"})

    def test_inv11_words_changed_by_ptrace(self):
        self.assertIn("ran_ptraced_x", self.take("words_changed_by_ptrace", True))
        # What a debugger writes into memory is nowhere else; the words of the execution are those that there were.
        self.assertFalse(self.has(b"echo ran_ptraced_x"))
        self.assertIn(["sh", "-c", "echo harmless_word"], [run["argv"] for run in self.of("process.exec")])


class Inv11TwoProcessors(Tricks):  # 30 s
    """What somebody on another processor does meanwhile."""

    def both(self, script, *args):
        self.manifest(MANIFEST % 2)
        self.repository({"work": HELP + script})
        out = self.firestop("run", "--", "python3", "/workspace/repo/work", *args).stdout.decode()
        [folder] = sorted((self.state / "firestop" / "runs").glob("*/evidence"))[-1:]
        self.kept = [path.read_bytes() for path in folder.glob("content/*/*")]
        self.events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        if "FIRESTOP_TRICKS" in os.environ:
            print(out, self.of("lost"), file=sys.stderr)
        return out

    def missing(self, text, count):
        codes = {code.get("digest") for code in self.of("code")}
        return [n for n in range(count) if hashlib.sha256(text % n).hexdigest() not in codes]

    def lost(self):
        return sum(one["count"] for one in self.of("lost"))

    def test_inv11_a_thread_executes_while_others_end(self):
        """Their ends are told after the execution, and are none of the process's."""
        self.assertIn("threads done", self.both(THREADS))
        missing = self.missing(b"exit 0 # thread %d\n", THREAD_RUNS)
        self.assertLessEqual(len(missing), self.lost(), missing)

    def test_inv11_a_file_as_stdin(self):
        self.assertIn("stdin done", self.both(STDINS))
        missing = self.missing(b"exit 0 # stdin %d\n", STDIN_RUNS)
        self.assertLessEqual(len(missing), self.lost(), missing)

    def test_inv11_the_folder_of_a_removal(self):
        self.assertIn("folders done", self.both(FOLDERS))
        self.assertEqual([one["path"] for one in self.of("file.delete") if one["path"].startswith("/tmp/false/")], [])


THREAD_RUNS, STDIN_RUNS = 150, 60
THREADS = r"""
put("/tmp/threads.c", br'''
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
static char *name;
static void *others(void *x) { setpriority(PRIO_PROCESS, syscall(SYS_gettid), 19); while (1) if (!x) pause(); return x; }
static void *runs(void *x) { usleep(20000); execl("/bin/dash", "dash", name, (char *)0); return x; }
int main(int argc, char **argv) {
  pthread_t t; name = argv[1];
  for (long i = 0; i < 30; ++i) pthread_create(&t, 0, others, (void *)(long)(i % 10 == 9));
  pthread_create(&t, 0, runs, 0);
  setpriority(PRIO_PROCESS, 0, 19);
  while (1) pause();
}
''')
subprocess.run(["gcc", "-O", "-pthread", "-o", "/tmp/threads", "/tmp/threads.c"], check=True)
for n in range(COUNT):
    put("/tmp/th", b"exit 0 # thread %d\n" % n)
    subprocess.run(["/tmp/threads", "/tmp/th"], check=True)
print("threads done")
""".replace("COUNT", str(THREAD_RUNS))
STDINS = r"""
for n in range(COUNT):
    put("/tmp/si", b"exit 0 # stdin %d\n" % n)
    fd = os.open("/tmp/si", os.O_RDONLY)
    pid = os.posix_spawn("/bin/dash", ["dash"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, fd, 0)])
    os.waitpid(pid, 0)
    os.close(fd)
print("stdin done")
""".replace("COUNT", str(STDIN_RUNS))
FOLDERS = r"""
put("/tmp/fo.c", br'''
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  int real = open("/tmp/real", O_RDONLY), other = open("/tmp/false", O_RDONLY);
  char name[20];
  for (int i = 0; i < 200; ++i) {
    int fd = 20; dup2(real, fd);
    sprintf(name, "%d", i);
    unlinkat(fd, name, 0);
    dup2(other, fd);
    for (volatile int j = 0; j < 300000; ++j) ;
  }
}
''')
subprocess.run(["gcc", "-O", "-o", "/tmp/fo", "/tmp/fo.c"], check=True)
for folder in ("/tmp/real", "/tmp/false"):
    os.mkdir(folder)
    for n in range(200): put(f"{folder}/{n}", b"")
subprocess.run(["/tmp/fo"], check=True)
print("folders done", len(os.listdir("/tmp/real")), len(os.listdir("/tmp/false")))
"""

if __name__ == "__main__":
    main()
