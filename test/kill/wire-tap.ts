// What an ordinary client really says and hears: sockets for kafkajs that pass each pair of request and answer on, decoded
// by our own definitions. What the client makes of it can then be held against the wire.
// Not for: encrypted connections; requests without an answer.
import { connect, type Socket } from 'node:net';
import type { ISocketFactory } from 'kafkajs';
import type { AnyApi } from '../../src/protocol/api.ts';
import { decodeResponse, openRequest } from '../../src/protocol/envelope.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';

/** A request with its answer; both have the API's own shape. */
export interface Exchange {
  /** HOST:PORT of the broker. */
  readonly to: string;
  readonly api: AnyApi;
  readonly version: number;
  readonly request: unknown;
  readonly response: unknown;
  /** When it was asked and answered, by `performance.now()`. */
  readonly askedMs: number;
  readonly answeredMs: number;
}

/** @param onExchange called for each answer as it arrives. What can't be read ends the process: it is the harness's fault. */
export function tappedSockets(onExchange: (exchange: Exchange) => void): ISocketFactory {
  return ({ host, port, onConnect }) => {
    const socket = connect({ host, port, noDelay: true }, onConnect);
    tap(socket, (exchange) => onExchange({ ...exchange, to: `${host}:${port}` }));
    return socket;
  };
}

interface Asked {
  readonly api: AnyApi;
  readonly version: number;
  readonly request: unknown;
  readonly askedMs: number;
}

function tap(socket: Socket, onExchange: (exchange: Omit<Exchange, 'to'>) => void): void {
  const asked = new Map<number, Asked>();
  const sent = new FrameDecoder();
  const heard = new FrameDecoder();
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = ((chunk: Buffer | string, ...rest: unknown[]) => {
    for (const frame of sent.push(Buffer.from(chunk as string, 'binary'))) {
      const { api, version, readable, correlationId, body } = openRequest(Buffer.from(frame));
      if (!readable) continue;
      const request = api.request.decode(body, version);
      asked.set(correlationId, { api, version, request, askedMs: performance.now() });
    }
    return write(chunk, ...rest);
  }) as typeof socket.write;
  socket.on('data', (chunk: Buffer) => {
    for (const frame of heard.push(Buffer.from(chunk))) {
      const answer = Buffer.from(frame);
      const correlationId = answer.readInt32BE(0);
      const question = asked.get(correlationId);
      asked.delete(correlationId);
      if (question === undefined) continue;
      const { response } = decodeResponse(question.api, question.version, answer);
      onExchange({ ...question, response, answeredMs: performance.now() });
    }
  });
}
