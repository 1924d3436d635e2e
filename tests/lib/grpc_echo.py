"""A gRPC server of plain bytes: /test.Echo/Unary, /test.Echo/Down (each byte of the request a message), and
/test.Echo/Both (each message comes back). Usage: grpc_echo.py KEY CERTIFICATE LOG; prints its port.
"""
import concurrent.futures
import json
import pathlib
import sys

import grpc


def main(key, certificate, log):
    def noted(context):
        with open(log, "a", encoding="utf-8") as out:
            out.write(json.dumps({name: str(value) for name, value in context.invocation_metadata()}) + "\n")

    def unary(message, context):
        noted(context)
        return message

    def down(message, context):
        noted(context)
        for byte in message:
            yield bytes([byte])

    def both(messages, context):
        noted(context)
        yield from messages

    handlers = {"Unary": grpc.unary_unary_rpc_method_handler(unary),
                "Down": grpc.unary_stream_rpc_method_handler(down),
                "Both": grpc.stream_stream_rpc_method_handler(both)}
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
    pair = (pathlib.Path(key).read_bytes(), pathlib.Path(certificate).read_bytes())
    print(server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair])), flush=True)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
