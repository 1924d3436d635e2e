"""Control groups of version 2 with delegation, on a real kernel: a guest's, since test hosts may have version 1."""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import FIRESTOP, SandboxTest, main  # noqa: E402

# As root in the guest: a group that is handed to account 1000, and one that is not. `as_user GROUP WORDS...` runs a
# program there.
SET_UP = r"""
cd /workspace; cp probe /tmp/probe; chmod 755 /tmp/probe
for g in ours theirs; do mkdir /sys/fs/cgroup/$g; done
chown 1000 /sys/fs/cgroup/ours /sys/fs/cgroup/ours/cgroup.procs /sys/fs/cgroup/ours/cgroup.subtree_control
cat > /tmp/as_user.py <<'END'
import os, sys
group, words = sys.argv[1], sys.argv[2:]
open(f"/sys/fs/cgroup/{group}/cgroup.procs", "w").write("0")
os.setgroups([]); os.setgid(1000); os.setuid(1000)
os.execv(words[0], words)
END
as_user() { python3 /tmp/as_user.py "$@"; }
state() { echo "handed $(cat /sys/fs/cgroup/ours/cgroup.subtree_control)"
          echo "left $(cd /sys/fs/cgroup/ours; ls -d firestop* 2>/dev/null | tr '\n' ' ')"; }
"""


class CgroupVersion2(SandboxTest):
    def in_guest(self, script):
        self.env["FIRESTOP_TEST_GUEST_ROOT"] = "1"
        shutil.copy(pathlib.Path(FIRESTOP).parent / "cgroup-probe", self.work / "probe")
        self.manifest("workspace: {entries: {probe: {type: local_file, src: probe}}}\n")
        out = self.run_in(SET_UP + script)
        return [line.split(" ", 1) if " " in line else [line, ""] for line in out.splitlines()]

    def test_a_group_of_ours_alone_holds_a_process_and_is_as_before_afterwards(self):
        said = self.in_guest("as_user ours /tmp/probe look; as_user ours /tmp/probe hold; state")
        look, hold = dict(said[:3]), dict(said[3:])
        self.assertEqual(look["found"], "v2, group /ours, delegated to us: memory pids cpu")
        self.assertEqual((look["usable"], look["why"]), ("yes", ""))
        self.assertEqual(hold["caps"], "v2 memory pids cpu", hold)
        self.assertEqual(hold["self"], "0::/ours/firestop.self", "we went into a leaf, or nothing is handed down")
        self.assertEqual(hold["held"], "0::/ours/firestop-probe")
        self.assertLess(float(hold["cpu"]), 0.2 * 1.5)
        self.assertEqual(hold["forks"], "4 EAGAIN", "five processes, one of them forks")
        self.assertEqual(hold["killed"], "9", "more memory than memory.max")
        self.assertEqual(hold["after"], "0::/ours")
        self.assertEqual((hold["handed"].strip(), hold["left"].strip()), ("", ""))

    def test_what_cannot_be_used_is_said_and_left_alone(self):
        said = self.in_guest("as_user theirs /tmp/probe look; as_user theirs /tmp/probe hold | grep caps;"
                             "sleep 1000 >/dev/null 2>&1 & other=$!; echo $other > /sys/fs/cgroup/ours/cgroup.procs;"
                             "as_user ours /tmp/probe look; as_user ours /tmp/probe hold | grep caps;"
                             "kill $other; state")
        self.assertEqual([value for name, value in said if name == "usable"], ["no", "no"])
        whys = [value for name, value in said if name == "why"]
        self.assertIn("not ours to write", whys[0])
        self.assertIn("processes of others", whys[1])
        self.assertEqual([value.strip() for name, value in said if name == "caps"], ["none", "none"])
        self.assertEqual([value.strip() for name, value in said if name in ("handed", "left")], ["", ""])

    def test_root_at_the_root_of_the_tree_where_processes_may_be(self):
        said = dict(self.in_guest("echo 0 > /sys/fs/cgroup/cgroup.procs; /tmp/probe hold; state"))
        self.assertEqual(said["caps"], "v2 memory pids cpu", said)
        self.assertEqual((said["self"], said["held"], said["killed"]), ("0::/", "0::/firestop-probe", "9"))


if __name__ == "__main__":
    main()
