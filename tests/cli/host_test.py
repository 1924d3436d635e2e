"""doctor and image: what they say of this machine and of an empty cache."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import CliTest, main  # noqa: E402


class DoctorTest(CliTest):
    def checks(self, status=None, env=None):
        done = self.firestop("doctor", "--json", status=status, env=env)
        document = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if document["runs_possible"] else 242)
        return document, {check["id"]: check for check in document["checks"]}

    def test_every_check_says_what_it_found_and_how_to_mend_it(self):
        document, checks = self.checks()
        self.assertEqual(set(checks), {"kernel", "qemu", "kvm", "guest", "jail", "network", "image", "mmdebstrap", "userns", "subids",
                                       "git", "ssh_keygen", "mke2fs", "cgroups", "memory", "state_disk", "cache_disk"})
        for check in document["checks"]:
            self.assertEqual(set(check), {"id", "title", "state", "found", "meaning", "mend"})
            self.assertIn(check["state"], ("ok", "degraded", "missing"))
            self.assertNotEqual(check["found"], "")
            if check["state"] != "ok":
                self.assertNotEqual(check["meaning"], "", check)
                self.assertNotEqual(check["mend"], "", check)
        caps = {cap["cap"]: cap["by"] for cap in document["caps"]}
        self.assertLessEqual({"rating", "cpus", "memory", "disk", "io", "processes", "open_files", "output", "result",
                              "result_files", "console"}, set(caps))
        self.assertTrue(all(caps.values()), "a cap that nothing keeps")
        # The check says "ok" exactly where a group of the host keeps all that one can keep.
        grouped = all(any(by.startswith("host_cgroup") for by in caps[cap]) for cap in ("cpus", "memory", "processes"))
        self.assertEqual(checks["cgroups"]["state"] == "ok", grouped)
        self.assertEqual(checks["image"]["state"], "degraded", "nothing is built in a new cache")
        self.assertEqual(document["runs_possible"], all(c["state"] != "missing" for c in document["checks"]))

    def test_a_machine_without_anything(self):
        empty = self.folder / "bin"
        empty.mkdir()
        # System folders are searched as well, so only what lies in /usr/bin can be made to be missing.
        document, checks = self.checks(status=242, env={"PATH": str(empty)})
        self.assertFalse(document["runs_possible"])
        for name in ("qemu", "git", "mmdebstrap"):
            self.assertEqual(checks[name]["state"], "missing")
            self.assertIn("apt-get install", checks[name]["mend"])

    def test_for_people(self):
        done = self.firestop("doctor", status=None)
        self.assertRegex(done.stdout, r"(?m)^(ok|degraded|missing) +QEMU ")
        self.assertIn("mend: ", done.stdout)
        self.assertIn("possible here", done.stdout)

    def test_a_folder_that_cannot_be_written(self):
        (self.folder / "file").write_text("")  # root may write every folder, but no file is one
        _, checks = self.checks(status=242, env={"XDG_STATE_HOME": str(self.folder / "file" / "state")})
        self.assertEqual(checks["state_disk"]["state"], "missing")
        self.assertIn("XDG_STATE_HOME", checks["state_disk"]["mend"])

    def test_changes_nothing(self):
        self.firestop("doctor", status=None)
        self.assertFalse(self.state.exists())
        self.assertFalse(self.cache.exists())


class ImageTest(CliTest):
    def test_an_empty_cache(self):
        self.assertIn("no images yet", self.firestop("image", "list").stdout)
        self.assertEqual(self.json_of("image", "list"), [])
        self.assertEqual(self.json_of("image", "prune"), {"freed_bytes": 0})
        self.assertEqual(self.firestop("image", "prune", "--all").stdout, "freed 0B\n")

    def test_an_image_without_a_recipe(self):
        self.assert_error(self.firestop("image", "build", "no-such-image", status=None), "no-such-image", 240)
        self.assert_json_error(("image", "build", "../x", "--json"), "image.bad_name", 240)


class MemoryTest(CliTest):
    def test_nothing_is_kept(self):
        self.assertIn("nothing is kept", self.firestop("memory", "list").stdout)
        self.assertEqual(self.json_of("memory", "list"), [])
        self.assert_error(self.firestop("memory", "forget", "notes", status=None), "nothing is kept", 240)
        self.assert_json_error(("memory", "forget", "../runs", "--json"), "memory.not_found", 240)
        self.assertFalse(self.state.exists())


if __name__ == "__main__":
    main()
