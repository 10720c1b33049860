"""moto_server, answering one request at a time. moto looks whether a key is there and writes it in two steps, so of several
threads more than one may win a conditional write; a real S3 lets one win. Arguments: moto_server's."""

import threading

from moto import server

run_simple = server.run_simple


def run_guarded(host, port, app, **options):
    lock = threading.Lock()

    def guarded(environ, start_response):
        with lock:
            return app(environ, start_response)

    run_simple(host, port, guarded, **options)


server.run_simple = run_guarded
server.main()
