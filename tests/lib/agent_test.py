"""Coding agents as people get them from npm, in a sandbox, by the manifests of examples/coding-agent, with a scripted
model behind the name of the real service."""
import hashlib
import os
import pathlib
import shutil

from egress_test import EgressTest, main  # noqa: F401  pylint: disable=unused-import
from model_server import ModelServer
from npm import cache_folder, npm_ci
from sandbox_test import LIMIT

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/coding-agent"
KEY = "sk-live-0123456789-the-real-one"
TASK = "Running test_slug.py fails. Find out why, mend it, and show that it passes.\n"
FAREWELL = "Words are joined by a hyphen again."
WRONG, RIGHT = "text.lower().replace(' ', '_')", "text.lower().replace(' ', '-')"
REPOSITORY = {
    "slug.py": f"def slug(text):\n    return {WRONG}\n",
    "test_slug.py": "import unittest\nfrom slug import slug\n\n\nclass SlugTest(unittest.TestCase):\n"
                    "    def test_words(self):\n        self.assertEqual(slug('Hello World'), 'hello-world')\n\n\n"
                    "unittest.main()\n",
    ".gitignore": "__pycache__/\n",
}


def installed(agent):
    """The node_modules of an agent, by the example's lock file; kept for the next time."""
    lock = (EXAMPLE / agent / "package-lock.json").read_bytes()
    folder = cache_folder() / f"{agent}-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not folder.is_dir():
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
        shutil.copytree(EXAMPLE / agent, fresh)
        npm_ci(fresh)
        try:
            fresh.rename(folder)
        except OSError:
            shutil.rmtree(fresh)  # another test was faster
    return folder / "node_modules"


class AgentTest(EgressTest):
    limit = 2 * LIMIT

    def ask(self, agent, bound, host, plan, websockets=False):
        """Lets the agent work on the repository by the plan. The sandbox held a placeholder, the server got the key."""
        self.repository(REPOSITORY)
        config = self.folder / "config/firestop"
        config.mkdir(parents=True)
        shutil.copy(EXAMPLE / "credentials.yaml", config)
        (config / "credentials.yaml").chmod(0o600)
        self.env.update(OPENAI_API_KEY=KEY, ANTHROPIC_API_KEY=KEY)
        model = self.serve(ModelServer(self.authority.context_for(host), KEY, plan, FAREWELL, websockets), host)

        manifest = EXAMPLE / f"{agent}.yaml"
        shutil.copy(manifest, self.work)
        explained = self.json_of("explain", manifest.name)
        show = f'echo "held: ${explained["credentials"][0]["env"]}"; exec "$@"'
        done = self.firestop("run", manifest.name, "--name", "mended", "--bind", f"{agent}={bound}", *self.options, "--",
                             "sh", "-c", show, "sh", *explained["command"], input=TASK.encode())
        said = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(model.faults, [], said)
        self.assertEqual(len(model.results), len(plan), said)
        self.assertIn(FAREWELL, said)
        self.key_stayed_out(model, said)
        return model

    def mend(self, agent, bound, host, plan, websockets=False):
        """The same, with a plan that mends the bug."""
        model = self.ask(agent, bound, host, plan, websockets)
        self.came_back()
        self.only_crossed_to(host)
        return model

    def came_back(self):
        self.assertEqual(self.git("rev-parse", "main~0", "HEAD"), self.git("rev-parse", "agent/mended~1", "main"))
        self.assertIn(WRONG, (self.work / "slug.py").read_text())
        self.assertEqual(self.git("diff", "--stat", "--name-only", "main", "agent/mended"), "slug.py")
        self.assertIn(RIGHT, self.git("show", "agent/mended:slug.py"))

    def key_stayed_out(self, model, said):
        held = said.split("held: ", 1)[1].split("\n", 1)[0]
        self.assertRegex(held, "^sk-[-\\w]{30,}$")
        self.assertNotEqual(held, KEY)
        arrived = [request.text() for request in model.requests] + model.frames
        self.assertTrue(all(request.text().count(KEY) == 1 for request in model.requests))
        # What the tools print is told, as it is; in its own place there is the key, and nowhere else either.
        told = [c for c in self.crossings(kind="request") if c.get("in_body")]
        self.assertEqual(bool(told), any(held in text for text in arrived))
        self.assertFalse([r for r in model.requests if held in r.head_text()])
        self.assertFalse([frame for frame in model.frames if KEY in frame])
        self.assertNotIn(KEY, said)
        for path in self.state.rglob("*"):
            if path.is_file():
                self.assertNotIn(KEY.encode(), path.read_bytes(), path)

    def only_crossed_to(self, host):
        """Everything that was allowed went to one host with the credential; whatever else was asked for was denied."""
        self.assertEqual(self.crossings(kind="alarm"), [])
        allowed = [c for c in self.crossings() if c["verdict"] != "denied"]
        self.assertEqual({c["host"] for c in allowed}, {host})
        requests = [c for c in allowed if c["kind"] == "request"]
        self.assertTrue(requests)
        self.assertEqual({c.get("credential") for c in requests}, {host.split(".")[1]})
