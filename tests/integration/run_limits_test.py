"""Limits in force, and each of Firestop's own exit codes, from the command line."""
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402


# Touches memory in steps that are granted one by one, until there is none left.
HOG = "x = []\nwhile True: x.append(bytearray(1 << 20))"


class ExitCodeTest(SandboxTest):
    def test_240_a_manifest_with_faults(self):
        self.manifest("raiting: 5m\n")
        done = self.firestop("run", "--", "true", status=240)
        self.assertIn(b"firestop.yaml:7:1: raiting: unknown key", done.stderr)

    def test_240_a_bad_command_line(self):
        self.manifest("")
        self.firestop("run", "--no-such-option", status=240)
        self.firestop("run", "--bind", "nonsense", "--", "true", status=240)
        self.firestop("run", status=240)  # no command anywhere
        self.firestop("run", "missing.yaml", "--", "true", status=240)

    def caps_hit(self):
        [record] = self.state.glob("firestop/runs/*/evidence/events.jsonl")
        events = map(json.loads, record.read_text().splitlines())
        return [event["data"] for event in events if event["kind"] == "cap.hit"]

    def test_242_what_this_version_cannot_enforce(self):
        for text, word in (("kind: verdict\ncapabilities: []\n", b"verdict"),):
            self.manifest(text)
            done = self.firestop("run", "--", "true", status=242)
            self.assertIn(word, done.stderr)

    def test_242_nothing_to_boot(self):
        self.manifest("")
        self.env["XDG_CACHE_HOME"] = str(self.folder / "cache")
        self.env["FIRESTOP_APT_SOURCES"] = "/nonexistent"
        self.firestop("run", "--", "true", status=242)

    def test_243_the_rating_is_the_hosts(self):
        self.manifest("rating: 4s\n")
        script = "trap '' INT TERM HUP; echo begun; while :; do sleep 1; done"
        done = self.firestop("run", "--json", "--", "sh", "-c", script, status=243)
        self.assertEqual(done.stdout, b"begun\n")
        self.assertEqual(self.ended(done)["error"]["code"], "rating.reached")
        self.assertEqual(self.caps_hit(), [{"cap": "rating", "limit": "4s"}])

    def test_244_output_beyond_its_cap(self):
        self.manifest("limits: {memory: 256MiB, disk: 512MiB, output: 1MiB}\n")
        done = self.firestop("run", "--json", "--", "yes", status=244)
        self.assertEqual(len(done.stdout), 1 << 20)
        self.assertEqual(self.ended(done)["error"]["code"], "cap.output")
        self.assertEqual(self.caps_hit(), [{"cap": "output", "limit": "1MiB"}])

    def test_244_memory(self):
        self.manifest("")
        done = self.firestop("run", "--json", "--", "python3", "-c", HOG, status=244)
        self.assertEqual(self.ended(done)["error"]["code"], "cap.memory")
        self.assertEqual(self.caps_hit(), [{"cap": "memory", "limit": "256MiB"}])

    def test_245_the_machine_dies_under_way(self):
        self.manifest("")
        process = self.start("run", "--json", "--", "sh", "-c", "echo up; sleep 100", stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.assertEqual(process.stdout.readline(), b"up\n")
        machines = self.children_of(process.pid, "qemu")
        self.assertEqual(len(machines), 1)
        os.kill(machines[0], 9)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 245, err)
        self.assertEqual(json.loads(err.splitlines()[-1])["error"]["code"], "guest.gone")

    def test_246_a_result_that_cannot_be_imported(self):
        self.repository()
        self.manifest("""
            workspace:
              entries:
                repo: {type: git_repo, repo: "."}
            """)
        done = self.firestop("run", "--", "sh", "-c", "rm -rf repo/.git; echo x > repo/README", status=246)
        self.assertIn(b"repo", done.stderr)


class LimitTest(SandboxTest):  # 50 s
    def test_memory_as_declared(self):
        self.manifest("limits: {memory: 256MiB, disk: 512MiB}\n")
        total = int(self.run_in("awk '/MemTotal/ {print $2}' /proc/meminfo"))
        self.assertLessEqual(total, 256 << 10)

    def test_243_a_machine_that_only_waits(self):
        self.manifest("idle: 3s\nworkspace: {entries: {out: {type: dir, output: true, max: 1MiB}}}\n")
        done = self.firestop("run", "--json", "--", "sh", "-c", "echo left > out/file; exec sleep 600", status=243)
        self.assertEqual(self.ended(done)["error"]["code"], "idle.reached")
        self.assertEqual([file.read_text() for file in self.work.glob("firestop-out/*/out/file")], ["left\n"])

    def test_a_child_that_is_killed_for_memory_is_noted(self):
        self.manifest("")
        done = self.firestop("run", "--json", "--", "sh", "-c",
                             f"python3 -c '{HOG}'; echo child: $?", status=0)
        self.assertEqual(done.stdout, b"child: 137\n")
        self.assertTrue(any("want of memory" in note for note in self.ended(done)["notes"]))

    def test_processes_end_at_their_cap_and_the_run_ends(self):
        self.manifest("limits: {memory: 256MiB, disk: 512MiB, processes: 32}\n")
        out = self.run_in("i=0; while [ $i -lt 100 ] && sleep 60 & do i=$((i+1)); done 2>/dev/null; echo $i", status=None)
        del out  # the shell's own failure; what matters is that the run ended and the next works
        self.assertEqual(self.run_in("echo fine"), "fine\n")

    def test_the_disk_is_full_at_its_size(self):
        self.manifest("limits: {memory: 256MiB, disk: 128MiB}\n")
        out = self.run_in("dd if=/dev/zero of=/workspace/fill bs=1M 2>&1 | tail -1; ls -l /workspace/fill | awk '{print $5}'")
        self.assertIn("No space left", self.run_in("dd if=/dev/zero of=/tmp/fill bs=1M 2>&1 | head -1; true"))
        self.assertLess(int(out.splitlines()[-1]), 128 << 20)

    def test_two_processors(self):
        self.manifest("limits: {memory: 256MiB, disk: 512MiB, cpus: 2}\n")
        self.assertEqual(self.run_in("nproc"), "2\n")

    def test_no_room_on_the_host_is_said_before_the_start(self):
        self.manifest("limits: {memory: 256MiB, disk: 16TiB}\n")
        done = self.firestop("run", "--", "true", status=None)
        self.assertIn(done.returncode, (240, 242))
        self.assertRegex(done.stderr.decode(), r"free|too large")


class KillTest(SandboxTest):
    def test_kill_9_leaves_nothing_and_the_next_command_sweeps(self):
        self.manifest("")
        for delay in (0.05, 0.3, 0.8, 2.0):
            process = self.start("run", "--name", f"victim-{int(delay * 1000)}", "--", "sleep", "100",
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            time.sleep(delay)
            children = self.descendants_of(process.pid)
            process.kill()
            process.wait()
            end = time.monotonic() + 20
            while any(child.alive() for child in children) and time.monotonic() < end:
                time.sleep(0.05)
            self.assertEqual([child.name for child in children if child.alive()], [])
        runs = self.json_of("runs")
        runs = runs["runs"] if isinstance(runs, dict) else runs
        self.assertTrue(all(run["state"] == "died" for run in runs), runs)
        left = [path for path in self.state.rglob("*") if path.suffix in (".img", ".erofs")]
        self.assertEqual(left, [])

    def test_a_living_run_is_left_alone_by_the_sweep(self):
        self.manifest("")
        process = self.start("run", "--name", "alive", "--", "sh", "-c", "echo up; read x; echo done",
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"up\n")
        self.firestop("runs")
        self.firestop("rm", "alive", status=None)
        process.stdin.write(b"x\n")
        process.stdin.close()
        self.assertEqual(process.stdout.read(), b"done\n")
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertEqual(self.json_of("show", "alive").get("state", "ended"), "ended")

    def test_eight_at_once(self):
        self.manifest("")
        processes = [self.start("run", "--", "echo", str(i), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                stdin=subprocess.DEVNULL) for i in range(8)]
        for i, process in enumerate(processes):
            out, _ = process.communicate(timeout=240)
            self.assertEqual((process.returncode, out), (0, f"{i}\n".encode()))


if __name__ == "__main__":
    main()
