// An S3 in this process, over HTTP on loopback: latency as a real bucket's, counters per verb, and faults by script. For
// tests, benchmarks and cluster harnesses; `double-process.ts` runs it in a process of its own. Any credentials will do;
// buckets come into being when first written to. Path style only. A write takes effect at the end of its latency, whether
// or not its client still waits: that is how the late writes of dead nodes come about.
// Not for: what real S3 does beyond what Floe asks of it; `server.ts` starts a foreign one for that.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { crc32 } from '@node-rs/crc32';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { type Prng, seededPrng } from '../../src/base/prng.ts';
import { type FaultRule, Faults, type Verb, verbs } from './double-faults.ts';
import { Bucket, etagOf, type Held } from './double-objects.ts';
import {
  type Answer,
  type Asked,
  conditionsOf,
  listUploads,
  NO_CONDITIONS,
  parse,
  putPart,
  read,
  refuse,
  remove,
  seen,
} from './double-requests.ts';
import { element, textElement, textsOf, xmlDocument } from './double-xml.ts';

export interface Latency {
  /** Milliseconds by verb before the answer begins. */
  readonly ms: Readonly<Record<Verb, number>>;
  /** Each takes this share more or less, evenly spread; 0.2: ±20 %. */
  readonly jitter: number;
}

/** A bucket in the same region: 100 ms to write, 30 ms to read. */
export const usualLatency: Latency = {
  ms: { put: 100, part: 100, multipart: 40, get: 30, head: 30, list: 40, delete: 40 },
  jitter: 0.2,
};
export const noLatency: Latency = {
  ms: { put: 0, part: 0, multipart: 0, get: 0, head: 0, list: 0, delete: 0 },
  jitter: 0,
};

export interface DoubleOptions {
  /** Default: {@link usualLatency}. */
  readonly latency?: Latency;
  /** Of jitter and faults. Default 1. */
  readonly seed?: number;
  /** Keys in a page of a listing. Default 1,000. */
  readonly pageKeys?: number;
  /** Default 0: any free one. */
  readonly port?: number;
  readonly clock?: Clock;
}

export interface VerbCount {
  readonly requests: number;
  /** Of bodies in and out. */
  readonly bytes: number;
  /** Answered with an error, or not at all. */
  readonly failed: number;
}
export type Counters = Readonly<Record<Verb, VerbCount>>;

export interface S3Double {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string;
  counters(): Counters;
  resetCounters(): void;
  setLatency(latency: Latency): void;
  /** Adds a fault; returns how to end it. */
  fault(rule: FaultRule): () => void;
  /** Of this tag; all if left out. */
  clearFaults(tag?: string): void;
  /** Keys of a bucket in byte order. */
  keys(bucket: string): readonly string[];
  /** Uploads in parts that were neither completed nor aborted. */
  uploads(bucket: string): number;
  /** Breaks off what is under way. */
  stop(): Promise<void>;
}

export async function startDouble(options: DoubleOptions = {}): Promise<S3Double> {
  const double = new Double(options);
  await double.listen(options.port ?? 0);
  return double;
}

type Count = { requests: number; bytes: number; failed: number };
const noCounts = (): Record<Verb, Count> =>
  Object.fromEntries(verbs.map((verb) => [verb, { requests: 0, bytes: 0, failed: 0 }])) as Record<
    Verb,
    Count
  >;

class Double implements S3Double {
  readonly #clock: Clock;
  readonly #prng: Prng;
  readonly #faults: Faults;
  readonly #pageKeys: number;
  readonly #buckets = new Map<string, Bucket>();
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #latency: Latency;
  #counts = noCounts();
  #uploads = 0;

  constructor({
    latency = usualLatency,
    seed = 1,
    pageKeys = 1_000,
    clock = systemClock,
  }: DoubleOptions) {
    this.#latency = latency;
    this.#clock = clock;
    this.#prng = seededPrng(seed);
    this.#faults = new Faults(seededPrng(seed + 1));
    this.#pageKeys = pageKeys;
    this.#server.keepAliveTimeout = 60_000;
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', resolve);
    });
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  counters(): Counters {
    return structuredClone(this.#counts);
  }

  resetCounters(): void {
    this.#counts = noCounts();
  }

  setLatency(latency: Latency): void {
    this.#latency = latency;
  }

  fault(rule: FaultRule): () => void {
    return this.#faults.add(rule);
  }

  clearFaults(tag?: string): void {
    this.#faults.clear(tag);
  }

  keys(bucket: string): readonly string[] {
    return this.#buckets.get(bucket)?.keys() ?? [];
  }

  uploads(bucket: string): number {
    return this.#buckets.get(bucket)?.uploads.size ?? 0;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #bucket(name: string): Bucket {
    let bucket = this.#buckets.get(name);
    if (bucket === undefined) this.#buckets.set(name, (bucket = new Bucket()));
    return bucket;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return; // The client went away in the middle of its body: S3 never saw the request.
    }
    const body = Buffer.concat(chunks);
    const url = new URL(request.url ?? '/', 'http://double');
    if (url.pathname === '/_double') return this.#control(request, response, body);
    const asked = parse(request, url, body);
    const fault = this.#faults.meet(asked.verb, asked.key);
    const count = this.#counts[asked.verb];
    count.requests += 1;
    count.bytes += body.length;
    const answer = await this.#answer(asked, fault);
    if (answer === undefined || answer.status >= 400) count.failed += 1;
    if (answer === undefined) return this.#silence(fault!, response);
    count.bytes += answer.body?.length ?? 0;
    send(asked, response, { answer, fault });
  }

  /** Undefined: there is no answer. */
  async #answer(asked: Asked, fault: FaultRule | undefined): Promise<Answer | undefined> {
    const { ms, jitter } = this.#latency;
    const usual = ms[asked.verb] * (1 + jitter * (2 * this.#prng.next() - 1));
    const extra = fault?.kind === 'slow' ? (fault.ms ?? 1_000) : 0;
    if (usual + extra > 0) await this.#clock.sleep(usual + extra);
    if (isSkewed(asked, this.#clock.now())) return tooSkewed(asked.key);
    switch (fault?.kind) {
      case 'slow-down':
        return refuse(503, 'SlowDown', asked.key, 'Please reduce your request rate.');
      case 'error-before':
        return refuse(500, 'InternalError', asked.key);
      case 'checksum':
        return refuse(400, 'BadDigest', asked.key);
      case 'skew':
        return tooSkewed(asked.key);
      case 'denied':
        return refuse(403, 'AccessDenied', asked.key);
      case 'conflict':
        return refuse(409, 'ConditionalRequestConflict', asked.key);
      case 'reset-before':
      case 'never':
        return undefined;
      case 'late':
        this.#clock.setTimer(fault.ms ?? 1_000, () => this.#effect(asked, undefined));
        return undefined;
      case 'error-after':
        this.#effect(asked, undefined);
        return refuse(500, 'InternalError', asked.key);
      case 'reset-after':
      case 'never-after':
        this.#effect(asked, undefined);
        return undefined;
      default:
        return this.#effect(asked, fault);
    }
  }

  #silence(fault: FaultRule, response: ServerResponse): void {
    if (fault.kind === 'never' || fault.kind === 'never-after') return;
    response.socket?.resetAndDestroy();
  }

  #effect(asked: Asked, fault: FaultRule | undefined): Answer {
    const bucket = this.#bucket(asked.bucket);
    switch (asked.verb) {
      case 'get':
      case 'head':
        return read(asked, seen(bucket, asked.key, fault));
      case 'list':
        return this.#list(asked, fault?.kind === 'missing' ? new Bucket() : bucket);
      case 'put':
        return asked.key === '' ? { status: 200 } : this.#put(asked, bucket, fault);
      case 'part':
        return putPart(asked, bucket);
      case 'multipart':
        return this.#multipart(asked, bucket, fault);
      case 'delete':
        return remove(asked, bucket);
    }
  }

  #put(asked: Asked, bucket: Bucket, fault: FaultRule | undefined): Answer {
    const { key, body, headers } = asked;
    const sum = headers['x-amz-checksum-crc32'] as string | undefined;
    if (sum !== undefined && sum !== crc32Base64(body)) return refuse(400, 'BadDigest', key);
    return this.#store(
      asked,
      { bucket, key, bytes: body, contentType: headers['content-type'] ?? '', sum },
      fault,
    );
  }

  #store(
    asked: Asked,
    object: {
      readonly bucket: Bucket;
      readonly key: string;
      readonly bytes: Buffer;
      readonly contentType: string;
      readonly sum?: string | undefined;
    },
    fault: FaultRule | undefined,
  ): Answer {
    const { bucket, key, bytes, contentType, sum } = object;
    const etag = etagOf(bytes);
    const held: Held = { bytes, etag, modifiedMs: this.#clock.now(), contentType, crc32: sum };
    const conditions = fault?.kind === 'unconditional' ? NO_CONDITIONS : conditionsOf(asked);
    if (conditions.ifMatch !== undefined && bucket.get(key) === undefined)
      return refuse(404, 'NoSuchKey', key);
    if (!bucket.put(key, held, conditions)) return refuse(412, 'PreconditionFailed', key);
    return { status: 200, headers: { etag: held.etag } };
  }

  #multipart(asked: Asked, bucket: Bucket, fault: FaultRule | undefined): Answer {
    const { key, query, method, body, headers } = asked;
    const id = query.get('uploadId');
    if (id === null) return this.#begin(asked, bucket, headers['content-type'] ?? '');
    const upload = bucket.uploads.get(id);
    if (upload?.key !== key) return refuse(404, 'NoSuchUpload', key);
    if (method === 'DELETE') {
      bucket.uploads.delete(id);
      return { status: 204 };
    }
    const parts = textsOf(body.toString(), 'PartNumber').map((number) =>
      upload.parts.get(Number(number)),
    );
    if (parts.length === 0 || parts.includes(undefined)) return refuse(400, 'InvalidPart', key);
    const bytes = Buffer.concat(parts.map((part) => part!.bytes));
    const stored = this.#store(
      asked,
      { bucket, key, bytes, contentType: upload.contentType },
      fault,
    );
    if (stored.status !== 200) return stored;
    bucket.uploads.delete(id);
    return {
      status: 200,
      body: xmlDocument(
        element(
          'CompleteMultipartUploadResult',
          textElement('Bucket', asked.bucket),
          textElement('Key', key),
          textElement('ETag', etagOf(bytes)),
        ),
      ),
    };
  }

  #begin({ bucket: name, key }: Asked, bucket: Bucket, contentType: string): Answer {
    const id = `upload-${++this.#uploads}`;
    bucket.uploads.set(id, {
      id,
      key,
      startedMs: this.#clock.now(),
      contentType,
      parts: new Map(),
    });
    return {
      status: 200,
      body: xmlDocument(
        element(
          'InitiateMultipartUploadResult',
          textElement('Bucket', name),
          textElement('Key', key),
          textElement('UploadId', id),
        ),
      ),
    };
  }

  #list({ bucket: name, query }: Asked, bucket: Bucket): Answer {
    const prefix = query.get('prefix') ?? '';
    if (query.has('uploads')) return listUploads(name, bucket, prefix);
    const page = bucket.list({
      prefix,
      after:
        query.get('continuation-token') ?? query.get('start-after') ?? query.get('marker') ?? '',
      delimiter: query.get('delimiter') ?? '',
      maxKeys: Math.min(this.#pageKeys, Number(query.get('max-keys') ?? this.#pageKeys)),
    });
    const encode =
      query.get('encoding-type') === 'url' ? encodeURIComponent : (text: string) => text;
    const contents = page.keys.map((key) => {
      const { bytes, etag, modifiedMs } = bucket.get(key)!;
      return element(
        'Contents',
        textElement('Key', encode(key)),
        textElement('LastModified', new Date(modifiedMs).toISOString()),
        textElement('ETag', etag),
        textElement('Size', bytes.length),
      );
    });
    return {
      status: 200,
      body: xmlDocument(
        element(
          'ListBucketResult',
          textElement('Name', name),
          textElement('Prefix', encode(prefix)),
          textElement('KeyCount', page.keys.length + page.prefixes.length),
          textElement('IsTruncated', page.next !== undefined),
          ...(page.next === undefined ? [] : [textElement('NextContinuationToken', page.next)]),
          ...contents,
          ...page.prefixes.map((folder) =>
            element('CommonPrefixes', textElement('Prefix', encode(folder))),
          ),
        ),
      ),
    };
  }

  /** `GET /_double`: counters; `POST`: `{counters: "reset", latency, fault, faults: "clear", tag}`, each optional. */
  #control(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    if (request.method === 'POST') {
      const order = JSON.parse(body.toString()) as ControlOrder;
      if (order.counters === 'reset') this.resetCounters();
      if (order.faults === 'clear') this.clearFaults(order.tag);
      if (order.latency !== undefined) this.setLatency(order.latency);
      if (order.fault !== undefined) this.fault(order.fault);
    }
    const buckets = [...this.#buckets].map(([name, bucket]) => [
      name,
      { objects: bucket.size, bytes: bucket.bytes },
    ]);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ counters: this.#counts, buckets: Object.fromEntries(buckets) }));
  }
}

/** S3 takes no request that was signed longer ago, or for later. */
const MAX_SKEW_MS = 15 * 60_000;

/** As the signature tells, `20250601T120000Z`. */
function isSkewed({ headers }: Asked, nowMs: number): boolean {
  const signed = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(
    String(headers['x-amz-date'] ?? ''),
  );
  if (signed === null) return false;
  const [year, month, ...rest] = signed.slice(1).map(Number) as [number, number, ...number[]];
  return Math.abs(Date.UTC(year, month - 1, ...rest) - nowMs) > MAX_SKEW_MS;
}

const tooSkewed = (key: string): Answer =>
  refuse(
    403,
    'RequestTimeTooSkewed',
    key,
    'The difference between the request time and the server time is too large.',
  );

/** What `/_double` takes. */
export interface ControlOrder {
  readonly counters?: 'reset';
  readonly faults?: 'clear';
  /** Of the faults to be cleared. */
  readonly tag?: string;
  readonly latency?: Latency;
  readonly fault?: FaultRule;
}

function send(
  { verb }: Asked,
  response: ServerResponse,
  { answer, fault }: { readonly answer: Answer; readonly fault: FaultRule | undefined },
): void {
  let body =
    typeof answer.body === 'string' ? Buffer.from(answer.body) : (answer.body ?? Buffer.alloc(0));
  if (fault?.kind === 'corrupt' && answer.status < 400 && body.length > 0) {
    body = Buffer.from(body);
    body[body.length >>> 1]! ^= 1;
  }
  response.writeHead(answer.status, {
    'x-amz-request-id': 'double',
    ...(typeof answer.body === 'string' ? { 'content-type': 'application/xml' } : {}),
    ...answer.headers,
    'content-length': String(body.length),
  });
  if (fault?.kind === 'truncate' && answer.status < 400) {
    response.write(body.subarray(0, body.length >>> 1), () => response.socket?.destroy());
    return;
  }
  response.end(verb === 'head' ? undefined : body);
}

function crc32Base64(bytes: Buffer): string {
  const value = Buffer.alloc(4);
  value.writeUInt32BE(crc32(bytes));
  return value.toString('base64');
}
