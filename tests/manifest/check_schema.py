#!/usr/bin/env python3
"""Holds schema/manifest.schema.json against the tables of good and bad manifests with an independent
validator (python3-jsonschema, python3-yaml). Exit 77: they are not installed."""
import json
import pathlib
import re
import sys

try:
    import jsonschema
    import yaml
except ImportError:
    print("skipped: python3-jsonschema or python3-yaml is missing")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE.parent.parent / "schema" / "manifest.schema.json"

# What a schema cannot say: faults of the text, and rules that look at two places or at meaning.
BEYOND = """
text- limit-octal limit-too limit-zero idle-longer kind-verdict rating-zero rating-too-long
run-as-undeclared run-as-which path-twice path-below path-long owner-undeclared user-twice user-group user-system
group-like-user environment-too-large environment-nul command-nul command-empty max-beyond max-without
permissions-octal permissions-none permissions-decimal ref-option ref-dots ref-ancestor path-reserved
egress-odd egress-address egress-localhost egress-top egress-cidr egress-tcp egress-paths egress-git
egress-contradiction egress-restricts egress-plain egress-registry egress-ca egress-credential credential-unused credential-parts credential-header credential-variable repo-host-address
limit-overflow limit-hexadecimal limit-nan max-zero skills-missing skills-not-granted memory-not-granted memory-too-much
memory-nothing
""".split()


class Core(yaml.SafeLoader):
    """Plain scalars by the core schema of YAML 1.2."""


Core.yaml_implicit_resolvers = {}
Core.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(~|null|Null|NULL|)$"), ["~", "n", "N", ""])
Core.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Core.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"),
                           list("-+0123456789"))
Core.add_implicit_resolver("tag:yaml.org,2002:float",
                           re.compile(r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan)$"),
                           list("-+0123456789."))


def integer(loader, node):
    text = node.value
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


Core.add_constructor("tag:yaml.org,2002:int", integer)


def load(path):
    text = path.read_bytes().decode("utf-8-sig")
    return json.loads(text) if path.suffix == ".json" else yaml.load(text, Core)


def main():
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    wrong = 0
    for path in sorted((HERE / "good").iterdir()):
        if path.suffix == ".json" and path.name.startswith("dialect-"):
            continue  # the schema has our spelling alone
        for error in validator.iter_errors(load(path)):
            print(f"{path.name}: {error.json_path}: {error.message[:200]}")
            wrong += 1
    refused = 0
    for path in sorted((HERE / "bad").iterdir()):
        if path.suffix == ".expect" or any(path.name.startswith(prefix) for prefix in BEYOND):
            continue
        try:
            document = load(path)
        except (yaml.YAMLError, ValueError):
            continue
        if validator.is_valid(document):
            print(f"{path.name}: the schema lets it pass")
            wrong += 1
        else:
            refused += 1
    print(f"{refused} bad manifests refused by the schema too; {wrong} wrong")
    return 1 if wrong else 0


sys.exit(main())
