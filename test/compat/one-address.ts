// One address before several brokers, for suites that know one only. A request that another broker leads or coordinates
// is sent there, as a client would: the brokers are asked in turn until one says neither. Records stay with the
// broker that took them last, where they can be read at once. The requests of a connection go one after the other.
// Not for: clients, which are told every broker's address.
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { RawClient } from '../../src/broker/testing/raw-client.ts';
import {
  decodeResponse,
  ErrorCode,
  encodeResponse,
  FrameDecoder,
  offsetFetchApi,
  openRequest,
  produceApi,
  type RequestEnvelope,
} from '../../src/protocol/index.ts';

const SIZE_BYTES = 4;

export interface OneAddress {
  /** HOST:PORT */
  readonly address: string;
  stop(): void;
}

/** @param ports of the brokers, on this machine. */
export async function startOneAddress(ports: readonly number[]): Promise<OneAddress> {
  const clients = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    clients.add(client);
    client.once('close', () => clients.delete(client));
    client.on('error', () => {});
    void serve(client, ports).finally(() => client.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop() {
      server.close();
      for (const client of clients) client.destroy();
    },
  };
}

/** Until the client or a broker closes. */
async function serve(client: Socket, ports: readonly number[]): Promise<void> {
  const brokers = await Promise.all(ports.map((port) => RawClient.connect(port)));
  for (const { closed } of brokers) void closed.then(() => client.destroy());
  const decoder = new FrameDecoder();
  try {
    for await (const chunk of client as AsyncIterable<Buffer>) {
      const frames = framesOf(decoder, chunk);
      if (frames === undefined) {
        brokers[0]!.socket.write(chunk);
        await brokers[0]!.closed;
        return;
      }
      for (const frame of frames) {
        const request = requestOf(frame);
        const answer = await ask(brokers, frame, request);
        if (answer !== undefined) client.write(sized(answer));
        else if (!isSilent(request)) return;
      }
    }
  } catch {
    // The client is gone.
  } finally {
    for (const { socket } of brokers) socket.destroy();
  }
}

/** undefined: the bytes are no frames. */
function framesOf(decoder: FrameDecoder, chunk: Buffer): Buffer[] | undefined {
  try {
    return decoder.push(chunk);
  } catch {
    return undefined;
  }
}

/** undefined: nothing that we could read the answer of. */
function requestOf(frame: Buffer): RequestEnvelope | undefined {
  try {
    const request = openRequest(frame);
    return request.readable ? request : undefined;
  } catch {
    return undefined;
  }
}

/** Whether nothing is answered to it. */
function isSilent(request: RequestEnvelope | undefined): boolean {
  if (request?.api !== produceApi) return false;
  const { body, version } = request;
  const { position } = body;
  const { acks } = produceApi.request.decode(body, version);
  body.position = position;
  return acks === 0;
}

/**
 * Puts a broker first that leads where the first one doesn't.
 * @returns the answer of the first broker that isn't sending us elsewhere, else the last one; undefined: none came.
 */
async function ask(
  brokers: RawClient[],
  frame: Buffer,
  request: RequestEnvelope | undefined,
): Promise<Buffer | undefined> {
  let led = true;
  const answers: Buffer[] = [];
  for (const broker of [...brokers]) {
    broker.socket.write(sized(frame));
    if (isSilent(request)) return undefined;
    const answer = await broker.frame();
    if (answer === undefined || request === undefined) return answer;
    answers.push(answer);
    const { response } = decodeResponse(request.api, request.version, answer);
    const codes = new Set(errorCodes(response));
    if (codes.has(ErrorCode.NOT_LEADER_OR_FOLLOWER)) led = false;
    else if (!codes.has(ErrorCode.NOT_COORDINATOR)) {
      if (!led) brokers.unshift(...brokers.splice(brokers.indexOf(broker), 1));
      return answer;
    }
  }
  return request?.api === offsetFetchApi ? merged(request.version, answers) : answers.at(-1);
}

/** Groups of several coordinators: each as its own says. */
function merged(version: number, answers: readonly Buffer[]): Buffer {
  const [first, ...others] = answers.map((each) => decodeResponse(offsetFetchApi, version, each));
  const { correlationId, response } = first!;
  const groups = response.groups.map((group, at) => {
    const said = [group, ...others.map((other) => other.response.groups[at]!)];
    return said.find(({ errorCode }) => errorCode !== ErrorCode.NOT_COORDINATOR) ?? group;
  });
  const whole = { api: offsetFetchApi, version, correlationId, response: { ...response, groups } };
  return Buffer.concat(encodeResponse(whole)).subarray(SIZE_BYTES);
}

/** All that lie in a decoded answer. */
function* errorCodes(value: unknown): Iterable<unknown> {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    if (/errorCode$/i.test(name)) yield inner;
    else yield* errorCodes(inner);
  }
}

function sized(frame: Uint8Array): Buffer {
  const size = Buffer.alloc(SIZE_BYTES);
  size.writeInt32BE(frame.length);
  return Buffer.concat([size, frame]);
}
