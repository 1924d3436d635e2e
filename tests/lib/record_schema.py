"""Holds records against schema/event.schema.json, and their attestations against theirs."""
import base64
import collections
import json
import pathlib

try:
    import jsonschema
except ImportError:  # then nothing is held, and the tests of the schema itself say that they were skipped
    jsonschema = None

# Events of one kind that are held in one record: what is right with so many is so with the next ten thousand, and each
# costs a millisecond.
MOST_OF_A_KIND = 500

SCHEMA = pathlib.Path(__file__).resolve().parent.parent.parent / "schema"


class RecordSchema:
    def __init__(self):
        schema = json.loads((SCHEMA / "event.schema.json").read_text())
        attestation = json.loads((SCHEMA / "attestation.schema.json").read_text())
        make = jsonschema.Draft202012Validator
        make.check_schema(schema)
        make.check_schema(attestation)
        self.attestation = make(attestation)
        self.event = make(schema)
        # A record has thousands of events: of each only the part for its kind, which the `if`s would look for.
        head = {key: value for key, value in schema.items() if key != "allOf"}
        self.head = make(head)
        self.data = {kind: make({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})
                     for kind in schema["properties"]["kind"]["enum"]}

    def faults(self, directory):
        """What is wrong with the record in `directory`, in words."""
        found, held = [], collections.Counter()
        for number, line in enumerate((directory / "events.jsonl").read_bytes().split(b"\n")[:-1], 1):
            event = json.loads(line)
            held[event.get("kind")] += 1
            if held[event.get("kind")] > MOST_OF_A_KIND:
                continue
            wrong = list(self.head.iter_errors(event))
            if not wrong:
                wrong = list(self.data[event["kind"]].iter_errors(event["data"]))
            found += [f"{directory}/events.jsonl:{number}: {event.get('kind')}: {error.message}" for error in wrong]
        path = directory / "attestation.json"
        if path.exists():
            statement = json.loads(base64.b64decode(json.loads(path.read_bytes())["payload"]))
            found += [f"{path}: {error.message}" for error in self.attestation.iter_errors(statement)]
        return found
