"""A crowd of connections to `firestop proxy`, as bench/connections makes it, of a size for every day."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import FIRESTOP, LIMIT  # noqa: E402

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "connections"


class ConnectionsTest(unittest.TestCase):
    def test_idle_half_closed_and_active_connections(self):
        done = subprocess.run([sys.executable, BENCH, "--firestop", FIRESTOP, "--idle", "600", "--active", "100", "--rounds",
                               "2"], capture_output=True, text=True, timeout=LIMIT, check=False,
                              env={**os.environ, "XDG_CONFIG_HOME": "/nonexistent"})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("every answer was right", done.stdout)


if __name__ == "__main__":
    unittest.main()
