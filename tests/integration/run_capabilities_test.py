"""Invariant 2: what the manifest does not grant is not there. Attacked from inside, as the container's account."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402

# Tries every way to execute something else, and prints what came of each: the name of the error, or how what was
# started ended. The declared command is this very script.
WITHOUT_SHELL = r'''#!/usr/bin/env python3
import ctypes, errno, json, os, shutil, stat, subprocess, sys, threading
if sys.argv[1:]:
    os._exit(int(sys.argv[1]))  # the declared command, executed again
libc = ctypes.CDLL(None, use_errno=True)
ME = os.path.realpath(sys.argv[0])
LOADER = "/lib64/ld-linux-x86-64.so.2"
came = {}

def attempt(name, function):
    """In a child: what is executed replaces it. Status 200 is an execution that returned no error."""
    sys.stdout.flush()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        try:
            function()
            os._exit(200)
        except OSError as error:
            os.write(write, errno.errorcode[error.errno].encode())
            os._exit(201)
    os.close(write)
    said = os.read(read, 100).decode()
    os.close(read)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    came[name] = said or f"ended with {status}"

def run(path, *args):
    return lambda: os.execve(path, [os.path.basename(str(path)), *args], dict(os.environ))

def raw(call, *args):
    if libc.syscall(call, *args) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

def copy(to):
    shutil.copy("/usr/bin/id", to)
    os.chmod(to, 0o755)
    return to

def script(to, text):
    with open(to, "w") as file:
        file.write(text)
    os.chmod(to, 0o755)
    return to

# By name, by other names, by descriptor.
attempt("execve", run("/usr/bin/id"))
attempt("path lookup", lambda: os.execvp("id", ["id"]))
attempt("system(3)", lambda: os._exit(os.waitstatus_to_exitcode(os.system("true"))))
attempt("subprocess", lambda: subprocess.run(["id"], check=True))
attempt("busy loop of shells", lambda: [os.posix_spawn("/bin/sh", ["sh"], {}) for _ in range(3)])
os.symlink("/usr/bin/id", "/tmp/link")
attempt("symbolic link", run("/tmp/link"))
attempt("fexecve", run(os.open("/usr/bin/id", os.O_RDONLY)))
fd = os.open("/usr/bin/id", os.O_RDONLY)
os.set_inheritable(fd, True)
attempt("/proc/self/fd", run(f"/proc/self/fd/{fd}"))
attempt("/dev/fd", run(f"/dev/fd/{fd}"))
attempt("/proc/PID/fd", lambda: run(f"/proc/{os.getpid()}/fd/{fd}")())
attempt("/proc/self/root", run("/proc/self/root/usr/bin/id"))
directory = os.open("/usr/bin", os.O_RDONLY | os.O_DIRECTORY)
argv = (ctypes.c_char_p * 2)(b"id", None)
attempt("execveat below a directory", lambda: raw(322, directory, b"id", argv, None, 0))
attempt("execveat of a path descriptor", lambda: raw(322, os.open("/usr/bin/id", os.O_PATH), b"", argv, None, 0x1000))
# Own copies, wherever one can write.
for folder in ("/workspace", "/workspace/out", "/tmp", os.environ["HOME"], "/dev/shm"):
    attempt(f"copy in {folder}", run(copy(folder + "/copy")))
attempt("named like the command", run(copy("/tmp/attack.py")))
attempt("own script", run(script("/tmp/own", "#!/bin/sh\nexit 0\n")))
attempt("own script for the allowed interpreter", run(script("/tmp/own2", f"#!{sys.executable}\nprint(1)\n")))
attempt("own script for the command", run(script("/tmp/own3", f"#!{ME}\n")))
try:
    memory = os.memfd_create("x", 0)
    attempt("memory file", run(memory))
except OSError as error:
    came["memory file"] = errno.errorcode[error.errno]
# The loader.
attempt("loader as a program", run(LOADER, "/usr/bin/id"))
attempt("loader by its real name", run(os.path.realpath(LOADER), "/usr/bin/id"))
def loader_after_failure():
    try:
        os.execve(sys.executable, ["x"] + ["y" * 100000] * 60, {})  # allowed, and fails on the way: E2BIG
    except OSError:
        os.execve(LOADER, [LOADER, "/usr/bin/id"], {})
attempt("loader after an execution that failed", loader_after_failure)
attempt("loader below env", lambda: os._exit(0 if subprocess.run(
    ["/usr/bin/env", LOADER, "/usr/bin/id"]).returncode == 0 else 9))
# The name changes while the kernel looks at it.
def race():
    name = ctypes.create_string_buffer(64)
    good, bad = sys.executable.encode() + b"\0", b"/usr/bin/id\0"
    def flip():
        while True:
            ctypes.memmove(name, bad, len(bad))
            ctypes.memmove(name, good, len(good))
    threading.Thread(target=flip, daemon=True).start()
    words = (ctypes.c_char_p * 5)(b"id", b"-S", b"-c", b"import os; os._exit(7)", None)
    raw(59, name, words, None)
races = set()
for i in range(12):
    attempt("race", race)
    races.add(came.pop("race"))
came["races"] = sorted(races)
# The command's own file.
def rewrite():
    with open(ME, "r+b") as file:
        file.write(b"#!/bin/sh\n")
attempt("rewrite the command", rewrite)
attempt("replace the command", lambda: os.replace("/tmp/attack.py", ME) or run(ME)())
attempt("move the command's twin there", lambda: os.replace(copy("/workspace/twin"), ME) or run(ME)())
attempt("remove the command", lambda: os.unlink(ME))
attempt("another name for the command", lambda: os.link(ME, "/workspace/other"))
attempt("rewrite through a descriptor", lambda: os.open(f"/proc/self/fd/{os.open(ME, os.O_RDONLY)}", os.O_RDWR))
attempt("rewrite the interpreter", lambda: open(sys.executable, "r+b"))
attempt("a mount over the command", lambda: raw(165, b"/tmp/attack.py", ME.encode(), None, 4096, None))
# One's own notifications instead of ours: SECCOMP_SET_MODE_FILTER, NEW_LISTENER.
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
allow = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\xff\x7f", 8)
attempt("own listener", lambda: raw(317, 1, 8, ctypes.byref(Program(1, ctypes.addressof(allow)))))
# What is granted.
attempt("the command again", run(ME, "42"))
attempt("its interpreter", run(sys.executable, "-S", "-c", "import os; os._exit(43)"))
attempt("env and its interpreter", run("/usr/bin/env", "python3", "-S", "-c", "import os; os._exit(44)"))
attempt("not there", run("/no/such/program"))
with open("/workspace/out/came.json", "w") as file:
    json.dump(came, file)
'''

# Tries to change the workspace, and says what went wrong; what may be done succeeds.
WITHOUT_FILESYSTEM = r'''
cd /workspace
try() { name=$1; shift; if ( eval "$*" ) >/tmp/said 2>&1; then echo "$name: done"; else echo "$name: $(tail -n 1 /tmp/said | sed 's/.*: //')"; fi; }
try new-file 'echo x > new'
try new-file-in-repository 'echo x > repo/new'
try append 'echo x >> repo/README'
try truncate 'truncate -s 0 repo/README'
try remove 'rm -f repo/README'
try move 'mv repo/README repo/other'
try move-out 'mv repo/README /tmp/README'
try move-in 'echo x > /tmp/in && mv /tmp/in repo/in'
try mode 'chmod 777 repo/README'
try times 'touch -d 2001-01-01 repo/README'
try attribute 'python3 -c "import os; os.setxattr(\"repo/README\", \"user.x\", b\"y\")" 2>&1 | grep -o Read-only.file.system; false'
try hard-link-out 'ln repo/README report/linked'
try hard-link-in 'echo x > report/own && ln report/own repo/linked'
try symbolic-link 'ln -s README repo/link'
try folder 'mkdir repo/sub'
try fifo 'mkfifo repo/fifo'
try reopen 'exec 9<repo/README; echo x > /proc/self/fd/9'
try reopen-folder 'cd report && echo x > ../from-output'
try root-link 'echo x > /proc/self/root/workspace/repo/new'
try init-root 'echo x > /proc/1/root/workspace/repo/new'
try commit 'cd repo && git commit --allow-empty -m x'
try mount-bind 'mount --bind /tmp repo'
try remount 'mount -o remount,rw /workspace'
try unmount 'umount report'
try namespace 'unshare -rm true'
try file-entry 'echo x > notes.md'
try output 'echo result > report/result'
try tmp 'echo x > /tmp/x'
try home 'echo x > ~/x'
try shm 'echo x > /dev/shm/x'
try program 'cp /bin/true /tmp/true && /tmp/true'
cat repo/README
'''

ENTRIES = """
workspace:
  entries:
    attack.py: {type: local_file, src: attack.py}
    out: {type: dir, output: true, max: 1MiB}
"""


class ShellTest(SandboxTest):
    def script(self, name, text):
        path = self.work / name
        path.write_text(text)
        path.chmod(0o755)

    def test_inv02_without_shell_nothing_but_the_command_is_executed(self):
        self.script("attack.py", WITHOUT_SHELL)
        self.manifest("capabilities: [filesystem]\ncommand: [./attack.py]\n" + ENTRIES)
        done = self.firestop("run", "--name", "attack", "--json")
        came = json.loads((self.work / "firestop-out/attack/out/came.json").read_text())
        granted = {"the command again": "ended with 42", "its interpreter": "ended with 43",
                   "env and its interpreter": "ended with 44", "not there": "ENOENT"}
        self.assertEqual({name: came.pop(name) for name in granted}, granted)
        # Neither of the two names is executed but the good one; a name that changes under way may read as EPERM.
        self.assertLessEqual(set(came.pop("races")), {"EACCES", "EPERM", "ended with 7", "ENOENT"})
        other = {"system(3)": "ended with 127", "loader below env": "ended with 9", "/proc/PID/fd": "EPERM",
                 "rewrite the command": "EROFS", "remove the command": "EBUSY", "replace the command": "EXDEV",
                 "move the command's twin there": "EBUSY", "another name for the command": "EXDEV",
                 "rewrite through a descriptor": "EROFS", "a mount over the command": "EPERM",
                 "own listener": "EBUSY"}
        self.assertEqual({name: came.pop(name) for name in other if name in came}, other)
        self.assertEqual({name: what for name, what in came.items() if what != "EACCES"}, {})
        self.assertGreater(len(came), 20)
        ended = self.ended(done)
        denied = {each["path"]: each["count"] for each in ended["run"]["denied"]}
        self.assertGreaterEqual(denied["/usr/bin/id"], 10)
        self.assertIn("/tmp/copy", denied)
        self.assertTrue(any("/ld-linux-x86-64.so.2" in path or "/ld-2" in path for path in denied), denied)
        self.assertTrue(all(each["kind"] == "exec" for each in ended["run"]["denied"]))
        self.assertTrue(any("`shell` is not granted" in note for note in ended["notes"]), ended["notes"])

    def test_inv02_a_shell_script_has_its_shell_and_no_programs_and_git_runs_no_filter_on_the_way_out(self):
        self.repository({"README": "hello\n"})
        self.script("job", """#!/bin/sh
            cd repo
            echo '* filter=evil diff=evil' > .gitattributes
            printf '[filter "evil"]\\n clean = "echo x >/workspace/out/clean; cat"\\n process = /bin/sh /tmp/x\\n' >> .git/config
            printf '[core]\\n fsmonitor = "echo x >/workspace/out/monitor"\\n' >> .git/config
            printf '[diff "evil"]\\n textconv = /bin/sh\\n' >> .git/config
            echo changed > README
            echo words > new
            ls; echo "ls: $?"; /bin/ls; git status; echo "git: $?"; (ls | /usr/bin/cat); exit 3
            """)
        self.manifest("""
            capabilities: [filesystem]
            command: [./job]
            workspace:
              entries:
                job: {type: local_file, src: job}
                repo: {type: git_repo, repo: "."}
                out: {type: dir, output: true, max: 1MiB}
            """)
        self.git("add", "job")
        done = self.firestop("run", "--name", "job", "--json", status=3)
        self.assertEqual(done.stdout.decode().split("\n")[:2], ["ls: 126", "git: 126"])
        self.assertIn(b"Permission denied", done.stderr)
        self.assertEqual(self.git("show", "agent/job:new"), "words")
        self.assertEqual(self.git("show", "agent/job:README"), "changed")
        self.assertFalse((self.work / "firestop-out/job/out/clean").exists())
        self.assertFalse((self.work / "firestop-out/job/out/monitor").exists())

    def test_inv02_with_shell_there_is_no_guard(self):
        self.manifest("")
        done = self.firestop("run", "--json", "--", "sh", "-c", "cp /usr/bin/id /tmp/mine && /tmp/mine -un; "
                             "python3 -c 'import os; os.memfd_create(\"x\")' && cat /run/firestop/capabilities.json")
        self.assertEqual(done.stdout, b'agent\n{"capabilities":["shell","filesystem"]}\n')
        self.assertEqual(self.ended(done)["run"]["denied"], [])


class FilesystemTest(SandboxTest):
    def test_inv02_without_filesystem_only_outputs_are_written(self):
        self.repository({"README": "hello\n"})
        self.manifest("""
            capabilities: [shell]
            workspace:
              entries:
                repo: {type: git_repo, repo: "."}
                notes.md: {type: file, content: "note"}
                report: {type: dir, output: true, max: 1MiB}
                """)
        done = self.firestop("run", "--name", "still", "--json", "--", "sh", "-c", WITHOUT_FILESYSTEM)
        *lines, readme = done.stdout.decode().splitlines()
        self.assertEqual(readme, "hello")
        came = dict(line.split(": ", 1) for line in lines)
        for name in ("output", "tmp", "home", "shm", "program"):
            self.assertEqual(came.pop(name), "done", name)
        for name in ("hard-link-out", "hard-link-in"):
            self.assertRegex(came.pop(name), "Invalid cross-device link|Read-only file system")
        for name in ("init-root", "mount-bind", "remount", "unmount", "namespace"):
            self.assertNotEqual(came.pop(name), "done", name)
        self.assertEqual({name: what for name, what in came.items() if "Read-only file system" not in what}, {})
        self.assertEqual(self.ended(done)["run"]["branches"], [])
        self.assertEqual((self.work / "firestop-out/still/report/result").read_text(), "result\n")

    def test_inv02_nothing_granted(self):
        (self.work / "look.py").write_text("""
import json, os
what = json.load(open('/run/firestop/capabilities.json'))
st = os.stat('/run/firestop/capabilities.json')
came = []
for function in (lambda: open('/workspace/new', 'w'), lambda: os.execv('/bin/sh', ['sh']),
                 lambda: open('/run/firestop/capabilities.json', 'r+'),
                 lambda: os.rename('/run/firestop', '/run/other'), lambda: open('/run/firestop/x', 'w')):
    try:
        function()
        came.append('done')
    except OSError as error:
        came.append(os.strerror(error.errno))
print(what, st.st_uid, oct(st.st_mode), came, [os.path.exists('/workspace/' + name) for name in ('.skills', '.firestop', '.memory')])
""")
        self.manifest("capabilities: []\ncommand: [python3, look.py]\n"
                      "workspace: {entries: {look.py: {type: local_file, src: look.py}}}\n")
        done = self.firestop("run")
        self.assertEqual(done.stdout.decode().strip(),
                         "{'capabilities': []} 0 0o100644 ['Read-only file system', 'Permission denied', "
                         "'Permission denied', 'Permission denied', 'Permission denied'] [False, False, False]")

    def test_inv02_compaction_is_one_capped_place_that_comes_back(self):
        self.manifest("capabilities: [shell, compaction]\n")
        script = "cd .firestop && echo short > compaction/summary && ! touch other && ! mv compaction elsewhere"
        self.run_in(script, "--name", "told")
        self.assertEqual((self.work / "firestop-out/told/.firestop/compaction/summary").read_text(), "short\n")
        self.run_in("truncate -s 2M .firestop/compaction/summary", "--name", "large", status=246)
        self.assertFalse((self.work / "firestop-out/large/.firestop/compaction/summary").exists())


if __name__ == "__main__":
    main()
