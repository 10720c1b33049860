// A client that speaks in frames: what no real client would send, it sends. For tests of sockets and handlers.
import { connect, type Socket } from 'node:net';
import type { AnyApi, ResponseOf } from '../../protocol/api.ts';
import { decodeResponse, encodeRequest } from '../../protocol/envelope.ts';
import type { Encodable } from '../../protocol/fields.ts';
import { FrameDecoder } from '../../protocol/frame-decoder.ts';

type RequestBody<A extends AnyApi> = Encodable<A['request']['schema']>;

export class RawClient {
  readonly socket: Socket;
  readonly #clientId: string;
  readonly #frames: Buffer[] = [];
  readonly #waiting: ((frame: Buffer | undefined) => void)[] = [];
  readonly #decoder = new FrameDecoder();
  #correlationId = 0;
  /** Resolves when the server has closed. */
  readonly closed: Promise<void>;
  isClosed = false;

  private constructor(socket: Socket, clientId = 'raw') {
    this.socket = socket;
    this.#clientId = clientId;
    socket.on('data', (chunk: Buffer) => {
      for (const frame of this.#decoder.push(chunk)) this.#deliver(Buffer.from(frame));
    });
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.isClosed = true;
        for (const wake of this.#waiting.splice(0)) wake(undefined);
        resolve();
      });
    });
  }

  /** A client on a socket that is connected already. */
  static over(socket: Socket, clientId?: string): RawClient {
    return new RawClient(socket, clientId);
  }

  static connect(port: number): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new RawClient(socket));
      });
    });
  }

  /** Sends a request and returns its correlation id. */
  send<A extends AnyApi>(api: A, version: number, request: RequestBody<A>): number {
    this.#correlationId += 1;
    const pieces = encodeRequest({
      api,
      version,
      correlationId: this.#correlationId,
      clientId: this.#clientId,
      request,
    });
    this.socket.write(Buffer.concat(pieces));
    return this.#correlationId;
  }

  /** The next frame without its size; undefined when the server closed instead. */
  frame(): Promise<Buffer | undefined> {
    const ready = this.#frames.shift();
    if (ready !== undefined) return Promise.resolve(ready);
    if (this.isClosed) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** The next reply, which is one to `api` in `version`. @throws when the server closed instead. */
  async receive<A extends AnyApi>(
    api: A,
    version: number,
  ): Promise<{ readonly correlationId: number; readonly response: ResponseOf<A> }> {
    const frame = await this.frame();
    if (frame === undefined) throw new Error('the server closed the connection');
    return decodeResponse(api, version, frame) as {
      correlationId: number;
      response: ResponseOf<A>;
    };
  }

  async call<A extends AnyApi>(
    api: A,
    version: number,
    request: RequestBody<A>,
  ): Promise<ResponseOf<A>> {
    this.send(api, version, request);
    return (await this.receive(api, version)).response;
  }

  close(): void {
    this.socket.destroy();
  }

  #deliver(frame: Buffer): void {
    const wake = this.#waiting.shift();
    if (wake === undefined) this.#frames.push(frame);
    else wake(frame);
  }
}
