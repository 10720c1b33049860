// Objects in an S3 bucket, AWS or compatible. One request per call, no retries inside (decorators/retrying.ts),
// so that every unknown outcome reaches whoever can judge it. Large bodies go by s3-multipart.ts.
// Not for: stores without `If-None-Match: *`; probe.ts finds them at start.
import http from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import { asBuffer } from '../../protocol/bytes.ts';
import { BodyPool } from './body-pool.ts';
import { bodyParts, bodySize, checkKey } from './keys.ts';
import type { GetOptions, ObjectInfo, ObjectStore, PutOptions } from './object-store.ts';
import { MAX_SINGLE_PUT_BYTES } from './prices.ts';
import { crc32Base64, joined, type S3Context, type S3Settings } from './s3-context.ts';
import { type S3Operation, s3Error } from './s3-errors.ts';
import { abortUploads, countUploads, putMultipart } from './s3-multipart.ts';
import { S3Wire, type WireAgents } from './s3-wire.ts';

/** S3's limit of keys in one delete request. */
const MAX_DELETE_KEYS = 1_000;
/** Parts of at least this size on average cost less to send one by one than to copy. */
const MIN_SENT_PART_BYTES = 64 * 1024;

/** Where objects lie: keys are put behind `prefix/` unless it is empty. */
export interface S3Location {
  readonly bucket: string;
  readonly prefix: string;
}

export class S3ObjectStore implements ObjectStore {
  readonly uri: string;
  readonly #client: S3Client;
  readonly #wire: S3Wire;
  readonly #location: S3Location;
  readonly #settings: S3Settings;
  readonly #clock: Clock;
  readonly #bodies = new BodyPool();

  constructor(location: S3Location, settings: S3Settings, clock: Clock) {
    this.uri = `s3://${location.bucket}${location.prefix === '' ? '' : `/${location.prefix}`}`;
    this.#location = location;
    this.#settings = settings;
    this.#clock = clock;
    const agents = createAgents(settings);
    this.#client = createClient(settings, agents);
    const { bucket } = location;
    this.#wire = new S3Wire({ client: this.#client, bucket, settings, agents, clock });
  }

  async put(
    key: string,
    body: Uint8Array | readonly Uint8Array[],
    options: PutOptions = {},
  ): Promise<void> {
    checkKey(key);
    const parts = bodyParts(body);
    const context = this.#context(key, options.signal);
    if (bodySize(parts) > MAX_SINGLE_PUT_BYTES) return putMultipart(context, parts, options);
    if (this.#sentInParts(parts)) return this.#putOne(context, parts, options);
    const whole = this.#bodies.join(parts);
    try {
      await this.#putOne(context, [whole.bytes], options);
    } finally {
      whole.release();
    }
  }

  /** Whether to hand parts to the socket as they are. Over TLS Node would join them itself, in fresh memory each time. */
  #sentInParts(parts: readonly Uint8Array[]): boolean {
    const plain = this.#settings['s3.endpoint'].startsWith('http:');
    return plain && bodySize(parts) >= parts.length * MIN_SENT_PART_BYTES;
  }

  async #putOne(
    context: S3Context,
    body: readonly Uint8Array[],
    options: PutOptions,
  ): Promise<void> {
    await context.ask('put', async (signal) => {
      const headers = {
        ...(options.ifNoneMatch === true ? { 'if-none-match': '*' } : {}),
        ...(options.contentType === undefined ? {} : { 'content-type': options.contentType }),
      };
      const answer = await this.#wire.send({
        method: 'PUT',
        key: context.fullKey,
        headers,
        body,
        signal,
      });
      if (answer === undefined) await this.#putBySdk(context, body, { ...options, signal });
      else await drained(answer);
    });
  }

  async #putBySdk(
    { bucket, fullKey }: S3Context,
    body: readonly Uint8Array[],
    options: PutOptions & { readonly signal: AbortSignal },
  ): Promise<void> {
    const bytes = joined(body);
    await this.#client.send(
      new PutObjectCommand({
        Bucket: bucket,
        Key: fullKey,
        Body: bytes,
        ContentLength: bytes.length,
        ChecksumCRC32: crc32Base64([bytes]),
        ...(options.ifNoneMatch === true ? { IfNoneMatch: '*' } : {}),
        ...(options.contentType === undefined ? {} : { ContentType: options.contentType }),
      }),
      { abortSignal: options.signal },
    );
  }

  async get(key: string, options: GetOptions = {}): Promise<Uint8Array> {
    checkKey(key);
    const { start = 0, into } = options;
    const length = Math.min(options.length ?? Infinity, into?.length ?? Infinity);
    const context = this.#context(key, options.signal);
    if (length === 0) {
      if ((await this.head(key)) === undefined)
        throw new FloeError('not-found', `there is no object "${key}"`);
      return new Uint8Array(0);
    }
    const range = rangeHeader(start, length);
    try {
      return await context.ask('get', async (signal) => {
        const headers = range === undefined ? WITH_CHECKSUM : { range };
        const answer = await this.#wire.send({
          method: 'GET',
          key: context.fullKey,
          headers,
          signal,
        });
        if (answer === undefined) return this.#getBySdk(context, { range, into, signal });
        const length = Number(answer.headers['content-length'] ?? 0);
        return asSent(answer.headers, await collect(answer, length, into));
      });
    } catch (caught) {
      // The range starts past the end: what is there is nothing.
      if (isFloeError(caught) && caught.details['status'] === 416) return new Uint8Array(0);
      throw caught;
    }
  }

  async #getBySdk(
    { bucket, fullKey }: S3Context,
    how: {
      readonly range: string | undefined;
      readonly into: Uint8Array | undefined;
      readonly signal: AbortSignal;
    },
  ): Promise<Uint8Array> {
    const { Body, ContentLength } = await this.#client.send(
      new GetObjectCommand({
        Bucket: bucket,
        Key: fullKey,
        ...(how.range === undefined ? { ChecksumMode: 'ENABLED' } : { Range: how.range }),
      }),
      { abortSignal: how.signal },
    );
    return collect(Body as http.IncomingMessage, ContentLength ?? 0, how.into);
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    checkKey(key);
    const { ask, bucket, fullKey } = this.#context(key);
    try {
      const { ContentLength, LastModified } = await ask('head', (abortSignal) =>
        this.#client.send(new HeadObjectCommand({ Bucket: bucket, Key: fullKey }), { abortSignal }),
      );
      return { key, size: ContentLength ?? 0, modifiedMs: LastModified?.getTime() ?? 0 };
    } catch (caught) {
      if (isFloeError(caught, 'not-found')) return undefined;
      throw caught;
    }
  }

  async *list(
    prefix: string,
    options: { readonly after?: string } = {},
  ): AsyncGenerator<ObjectInfo> {
    const { ask, bucket } = this.#context(prefix);
    let token: string | undefined;
    do {
      const page = await ask('list', (abortSignal) =>
        this.#client.send(
          new ListObjectsV2Command({
            Bucket: bucket,
            Prefix: this.#fullKey(prefix),
            ...(token === undefined ? {} : { ContinuationToken: token }),
            ...(options.after === undefined ? {} : { StartAfter: this.#fullKey(options.after) }),
          }),
          { abortSignal },
        ),
      );
      for (const { Key = '', Size = 0, LastModified } of page.Contents ?? []) {
        const key = Key.slice(this.#fullKey('').length);
        yield { key, size: Size, modifiedMs: LastModified?.getTime() ?? 0 };
      }
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) checkKey(key);
    for (let from = 0; from < keys.length; from += MAX_DELETE_KEYS)
      await this.#deleteSome(keys.slice(from, from + MAX_DELETE_KEYS));
  }

  abortUploads(prefix: string, beforeMs: number): Promise<number> {
    return abortUploads(this.#context(prefix), beforeMs);
  }

  countUploads(prefix: string, beforeMs: number): Promise<number> {
    return countUploads(this.#context(prefix), beforeMs);
  }

  async #deleteSome(keys: readonly string[]): Promise<void> {
    const { ask, bucket } = this.#context(keys[0]!);
    const { Errors = [] } = await ask('delete', (abortSignal) =>
      this.#client.send(
        new DeleteObjectsCommand({
          Bucket: bucket,
          Delete: { Quiet: true, Objects: keys.map((key) => ({ Key: this.#fullKey(key) })) },
        }),
        { abortSignal },
      ),
    );
    const failed = Errors.find(({ Code }) => Code !== 'NoSuchKey');
    if (failed !== undefined) {
      const error = { name: failed.Code ?? 'Error', message: failed.Message ?? '' };
      throw s3Error(error, { operation: 'delete', key: failed.Key ?? '', late: false });
    }
  }

  #fullKey(key: string): string {
    return this.#location.prefix === '' ? key : `${this.#location.prefix}/${key}`;
  }

  #context(key: string, signal?: AbortSignal): S3Context {
    return {
      client: this.#client,
      bucket: this.#location.bucket,
      settings: this.#settings,
      fullKey: this.#fullKey(key),
      ask: (operation, request) => this.#ask({ operation, key, signal }, request),
    };
  }

  async #ask<T>(
    what: { operation: S3Operation; key: string; signal: AbortSignal | undefined },
    request: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { operation, key, signal } = what;
    signal?.throwIfAborted();
    const deadline = new AbortController();
    const limitMs = this.#settings['s3.request.timeout.ms'];
    const timer = this.#clock.setTimer(limitMs, () => deadline.abort());
    try {
      return await request(
        signal === undefined ? deadline.signal : AbortSignal.any([deadline.signal, signal]),
      );
    } catch (caught) {
      throw s3Error(caught, { operation, key, late: deadline.signal.aborted });
    } finally {
      timer.cancel();
    }
  }
}

function createAgents(settings: S3Settings): WireAgents {
  const kept = { keepAlive: true, maxSockets: settings['s3.max.connections'] };
  return { httpAgent: new http.Agent(kept), httpsAgent: new https.Agent(kept) };
}

function createClient(settings: S3Settings, agents: WireAgents): S3Client {
  const endpoint = settings['s3.endpoint'];
  const region = settings['s3.region'] || (endpoint === '' ? '' : 'us-east-1');
  const accessKeyId = settings['s3.access.key.id'];
  const sessionToken = settings['s3.session.token'];
  const client = new S3Client({
    maxAttempts: 1,
    // Checksums are ours (native CRC32); the SDK's are computed in JavaScript.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(endpoint === '' ? {} : { endpoint, forcePathStyle: settings['s3.path.style'] }),
    ...(region === '' ? {} : { region }),
    ...(accessKeyId === ''
      ? {}
      : {
          credentials: {
            accessKeyId,
            secretAccessKey: settings['s3.secret.access.key'],
            ...(sessionToken === '' ? {} : { sessionToken }),
          },
        }),
    requestHandler: {
      connectionTimeout: settings['s3.connect.timeout.ms'],
      ...agents,
    },
  });
  if (!settings['s3.sign.payload']) leavePayloadUnsigned(client);
  return client;
}

/** Of the requests that carry data; the SDK hashes a body unless it is told what stands for its hash. */
function leavePayloadUnsigned(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        const request = args.request as { readonly headers: Record<string, string> };
        if (commandName === 'PutObjectCommand' || commandName === 'UploadPartCommand')
          request.headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD';
        return next(args);
      },
    { step: 'build', name: 'floeUnsignedPayload' },
  );
}

/** Of a part of an object S3 keeps no checksum. */
const WITH_CHECKSUM = { 'x-amz-checksum-mode': 'ENABLED' };

/**
 * What came, if it is what the store has. Only whole objects are looked at, and those that were stored with a CRC32, as ours
 * are; that of an upload in parts is none of the whole ("-" and their number behind it).
 * @throws FloeError `unavailable`: it was damaged on its way. A table's metadata with a turned bit would be carried on for ever.
 */
function asSent(headers: http.IncomingHttpHeaders, bytes: Uint8Array): Uint8Array {
  const stored = headers['x-amz-checksum-crc32'];
  if (typeof stored !== 'string' || stored.includes('-')) return bytes;
  const came = crc32Base64([bytes]);
  if (came !== stored)
    throw new FloeError('unavailable', `the store has CRC32 ${stored}, what came has ${came}`);
  return bytes;
}

function rangeHeader(start: number, length: number): string | undefined {
  if (length !== Infinity) return `bytes=${start}-${start + length - 1}`;
  return start === 0 ? undefined : `bytes=${start}-`;
}

/**
 * Reads an answer to its end, whatever becomes of it: its status has said all. Whoever aborts a request before that closes its
 * connection, and the next one pays for TCP and TLS again.
 */
async function drained(answer: http.IncomingMessage): Promise<void> {
  await finished(answer.resume()).catch(() => {});
}

/** The whole body, of `length` bytes, in `into` where there is one. */
function collect(
  body: Readable,
  length: number,
  into: Uint8Array | undefined,
): Promise<Uint8Array> {
  const target = into ?? new Uint8Array(length);
  const bytes = asBuffer(target);
  return new Promise((resolve, reject) => {
    const fail = (text: string) => {
      const error = new FloeError('unavailable', `the store sent ${text}`);
      reject(error);
      body.destroy(error);
    };
    let filled = 0;
    body.on('data', (chunk: Buffer) => {
      if (filled + chunk.length > target.length)
        return fail(`more than the ${target.length} bytes asked for`);
      // Not `set`: into shared memory it copies byte by byte unless both ends are aligned alike.
      chunk.copy(bytes, filled);
      filled += chunk.length;
    });
    body.once('end', () => {
      if (filled === length) resolve(target.subarray(0, filled));
      else fail(`${filled} of ${length} bytes`);
    });
    body.once('error', reject);
    body.once('close', () => fail(`${filled} of ${length} bytes`));
  });
}
