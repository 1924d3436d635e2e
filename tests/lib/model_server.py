"""A scripted model behind the streaming APIs that coding agents speak: OpenAI's Responses (server-sent events and
WebSocket) and Anthropic's Messages.

A plan stands in for the model: calls of tools, and a text at the end. Which turn is due is told by the tools' results in
the conversation. Clients send it whole with each request, or only what is new since an answer that they name; so what
led to each answer is remembered by the answer's id, and nothing else is.

The events: https://platform.openai.com/docs/api-reference/responses-streaming and
https://docs.anthropic.com/en/api/messages-streaming
"""
import itertools
import json
import threading

from egress_servers import Api


class Turn:
    """A call of `tool` with arguments: a dict, or text for a tool that takes text. `expects` must be in the result of the
    turn before: a model, too, goes by what it is told."""

    def __init__(self, tool, arguments, expects=""):
        self.tool, self.arguments, self.expects = tool, arguments, expects


class Conversation:
    """What was offered and what came back so far."""

    def __init__(self, tools=(), results=()):
        self.tools, self.results = dict(tools), list(results)  # tools: kinds by name


class ModelServer(Api):
    """`faults` has what did not fit, and is empty after a good run. `results` are the tools' results, in order;
    `frames` what came over WebSockets."""

    def __init__(self, context, key, plan, farewell, websockets=False):
        super().__init__(context)
        self.key, self.plan, self.farewell, self.websockets = key, plan, farewell, websockets
        self.faults, self.results, self.frames = [], [], []
        self.remembered, self.numbers, self.lock = {}, itertools.count(), threading.Lock()
        self.script("/v1/responses", self.responses)
        self.script("/v1/messages", self.messages)

    def fault(self, text):
        with self.lock:
            self.faults.append(text)

    def authorized(self, request, exchange, presented):
        """False if it has not the real key: then it was answered as such services answer."""
        if presented == self.key:
            return True
        self.fault(f"{request.method} {request.target}: the key was {presented!r}")
        exchange.send('{"error": {"type": "invalid_api_key", "message": "no such key"}}', 401, kind="application/json")
        return False

    def remember(self, kind, conversation):
        """A fresh id for the answer."""
        name = f"{kind}_{next(self.numbers)}"
        with self.lock:
            self.remembered[name] = conversation
            if len(conversation.results) > len(self.results):
                self.results = conversation.results
        return name

    def due(self, conversation):
        """The turn, or None for the farewell. Requests without tools are of another purpose: a title, a summary."""
        number = len(conversation.results)
        if not conversation.tools or number >= len(self.plan):
            return None
        turn = self.plan[number]
        if number and turn.expects not in conversation.results[-1]:
            self.fault(f"turn {number} expects {turn.expects!r} in {conversation.results[-1]!r}")
        if turn.tool not in conversation.tools:
            self.fault(f"turn {number}: no tool {turn.tool} in {sorted(conversation.tools)}")
            return None
        return turn

    # ---- Responses

    def responses(self, request, exchange):
        scheme, _, key = (request.get("authorization") or "").partition(" ")
        upgrade = (request.get("upgrade") or "").lower() == "websocket"
        if not self.authorized(request, exchange, key if scheme == "Bearer" else None):
            return True
        if upgrade and self.websockets:
            return self.socket(request, exchange)
        if upgrade:
            exchange.send("not over a WebSocket\n", 426)
        else:
            send_events(exchange, self.response(json.loads(request.body)))
        return True

    def socket(self, request, exchange):
        exchange.upgrade(request)
        while True:
            first, data = exchange.read_frame()
            if first & 15 == 8:
                exchange.send_frame(first, data)
                return False
            if first & 15 == 9:
                exchange.send_frame(0x8a, data)
                continue
            self.frames.append(data.decode())
            for event in self.response(json.loads(data)):
                exchange.send_frame(0x81, json.dumps(event).encode())

    def response(self, asked):
        """The events that answer one request."""
        before = self.remembered.get(asked.get("previous_response_id"), Conversation())
        tools = list(asked.get("tools", []))
        for item in asked["input"]:
            tools += item.get("tools", []) if item.get("type") == "additional_tools" else []
        conversation = Conversation(before.tools, before.results + [
            text_of(item["output"]) for item in asked["input"] if item.get("type", "").endswith("call_output")])
        for tool in tools:
            for inner in tool["tools"] if tool["type"] == "namespace" else [tool]:
                conversation.tools[inner.get("name") or inner["type"]] = inner["type"]
        name = self.remember("resp", conversation)
        # A client may send its part ahead and ask for the answer later.
        items = [] if asked.get("generate") is False else [self.response_item(name, conversation)]
        response = {"id": name, "object": "response", "model": asked["model"], "status": "in_progress", "output": []}
        usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}
        events = [{"type": "response.created", "response": response}]
        for item in items:
            events.append({"type": "response.output_item.added", "output_index": 0,
                           "item": dict(item, status="in_progress")})
            for part in item.get("content", []):
                events.append({"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0,
                               "content_index": 0, "delta": part["text"]})
            events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        events.append({"type": "response.completed",
                       "response": dict(response, status="completed", output=items, usage=usage)})
        return [dict(event, sequence_number=at) for at, event in enumerate(events)]

    def response_item(self, name, conversation):
        turn = self.due(conversation)
        if turn is None:
            return {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": self.farewell, "annotations": []}]}
        call = {"id": f"item_{name}", "call_id": f"call_{name}", "name": turn.tool, "status": "completed"}
        if conversation.tools[turn.tool] == "custom":
            return {"type": "custom_tool_call", "input": turn.arguments, **call}
        return {"type": "function_call", "arguments": json.dumps(turn.arguments), **call}

    # ---- Messages

    def messages(self, request, exchange):
        if not self.authorized(request, exchange, request.get("x-api-key")):
            return
        asked = json.loads(request.body)
        before = self.remembered.get(asked.get("thread", {}).get("previous_message_id"), Conversation())
        blocks = [block for message in asked["messages"] if isinstance(message["content"], list)
                  for block in message["content"]]
        conversation = Conversation(before.tools, before.results + [
            text_of(block.get("content", "")) for block in blocks if block["type"] == "tool_result"])
        conversation.tools.update({tool["name"]: "function" for tool in asked.get("tools", [])})
        turn, name = self.due(conversation), self.remember("msg", conversation)
        if turn is None:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": self.farewell}
        else:
            block = {"type": "tool_use", "id": f"toolu_{name}", "name": turn.tool, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(turn.arguments)}
        message = {"id": name, "type": "message", "role": "assistant", "model": asked["model"], "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
        send_events(exchange, [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use" if turn else "end_turn", "stop_sequence": None},
             "usage": {"output_tokens": 5}},
            {"type": "message_stop"}])


def text_of(content):
    """A result's text, which is a text or a list of parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def send_events(exchange, events):
    exchange.send_chunks((f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events),
                         headers=[("Cache-Control", "no-cache")], kind="text/event-stream")
