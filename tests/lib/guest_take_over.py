"""What root in the guest says in the names of PID 1 and of the collectors."""

# Stops PID 1 and the collectors and takes their parts of the conversation: the command ends, the streams end, nothing
# more is to be told, and what is handed over as the memory directory is `archive`, where it is not empty.
TAKE_OVER = r"""
import ctypes, json, os, struct, sys, time
DONE = True
archive = open("/tmp/archive", "rb").read()  # with stopped collectors nothing is opened any more
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
def take(pid):
    pidfd = libc.syscall(434, pid, 0)
    fd = next(int(f) for f in os.listdir(f"/proc/{pid}/fd") if "vport" in os.readlink(f"/proc/{pid}/fd/{f}"))
    port = libc.syscall(438, pidfd, fd, 0)
    assert port >= 0, ctypes.get_errno()
    assert libc.ptrace(0x4206, pid, 0, 0) == 0, ctypes.get_errno()  # PTRACE_SEIZE
    assert libc.ptrace(0x4207, pid, 0, 0) == 0, ctypes.get_errno()  # PTRACE_INTERRUPT
    os.waitpid(pid, 0x40000000)  # __WALL
    return port
def named(name):
    return next(int(p) for p in os.listdir("/proc") if p.isdigit() and open(f"/proc/{p}/comm").read() == name + "\n")
port, record = take(1), take(named("collector"))
os.set_blocking(port, True)
def frame(kind, stream, payload=b""):
    view = memoryview(struct.pack("<IBBH", len(payload), kind, 0, stream) + payload)
    while view: view = view[os.write(port, view):]
def say(**members):
    frame(1, 0, json.dumps(members).encode())
say(type="exited", id=0, status=0, out_of_memory=False, oom_kills=0, left_behind=0, cannot_start="")
frame(3, 2); frame(3, 3)
time.sleep(3)  # for the host to open its streams
for at in range(0, len(archive), 60000): frame(2, 9, archive[at:at + 60000])
if archive: frame(3, 9)
frame(3, 8)
if DONE:
    done = b'{"type":"done"}'
    os.write(record, struct.pack("<IBBH", len(done), 1, 0, 0) + done)
say(type="exported", repositories=[], output_files=0, outputs_error="", memory_error="", notes=[])
time.sleep(100)
"""
