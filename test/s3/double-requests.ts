// Requests to the S3 double taken apart, and those answered from a bucket alone: reads, parts, deletions, uploads under
// way. Not for: conditional writes, latency and faults (double.ts).
import type { IncomingMessage } from 'node:http';
import type { FaultRule, Verb } from './double-faults.ts';
import { type Bucket, type Conditions, etagOf, type Held } from './double-objects.ts';
import { element, errorXml, textElement, textsOf, xmlDocument } from './double-xml.ts';

/** A request as S3 names its parts. */
export interface Asked {
  readonly verb: Verb;
  readonly bucket: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly method: string;
  readonly body: Buffer;
}

/** What goes back, before faults of the wire. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

/** An error as S3 answers it. */
export const refuse = (status: number, code: string, key: string, message = code): Answer => ({
  status,
  body: errorXml(code, message, key),
});

/** Of a store that ignores them. */
export const NO_CONDITIONS: Conditions = { ifMatch: undefined, ifNoneMatch: undefined };

/** What the headers ask for. */
export const conditionsOf = ({ headers }: Asked): Conditions => ({
  ifMatch: headers['if-match'],
  ifNoneMatch: headers['if-none-match'],
});

/** A request of the path style: `/bucket/key?query`. */
export function parse(request: IncomingMessage, url: URL, body: Buffer): Asked {
  const [, bucket = '', ...rest] = url.pathname.split('/').map(decodeURIComponent);
  const { method = 'GET', headers } = request;
  const key = rest.join('/');
  const query = url.searchParams;
  const verb = verbOf(method, key, query);
  return {
    verb,
    bucket,
    key: key === '' ? (query.get('prefix') ?? '') : key,
    query,
    headers,
    method,
    body,
  };
}

function verbOf(method: string, key: string, query: URLSearchParams): Verb {
  if (query.has('uploads') && method === 'POST') return 'multipart';
  if (query.has('partNumber')) return 'part';
  if (query.has('uploadId')) return 'multipart';
  switch (method) {
    case 'PUT':
      return 'put';
    case 'HEAD':
      return 'head';
    case 'DELETE':
    case 'POST':
      return 'delete';
    default:
      return key === '' ? 'list' : 'get';
  }
}

/** The object as this request sees it. */
export function seen(bucket: Bucket, key: string, fault: FaultRule | undefined): Held | undefined {
  if (fault?.kind === 'missing') return undefined;
  return fault?.kind === 'stale' ? bucket.before(key) : bucket.get(key);
}

/** GET and HEAD, with a range. */
export function read({ key, headers }: Asked, held: Held | undefined): Answer {
  if (held === undefined) return refuse(404, 'NoSuchKey', key);
  const common = {
    etag: held.etag,
    'last-modified': new Date(held.modifiedMs).toUTCString(),
    'accept-ranges': 'bytes',
    ...(held.contentType === '' ? {} : { 'content-type': held.contentType }),
  };
  const withChecksum = headers['x-amz-checksum-mode'] === 'ENABLED' && held.crc32 !== undefined;
  const whole = withChecksum ? { ...common, 'x-amz-checksum-crc32': held.crc32! } : common;
  const size = held.bytes.length;
  const range = /^bytes=(\d*)-(\d*)$/.exec(headers.range ?? '');
  if (range === null) return { status: 200, headers: whole, body: held.bytes };
  const [, from = '', to = ''] = range;
  const start = from === '' ? Math.max(0, size - Number(to)) : Number(from);
  const end = from === '' || to === '' ? size : Math.min(size, Number(to) + 1);
  if (start >= size) return refuse(416, 'InvalidRange', key);
  return {
    status: 206,
    headers: { ...common, 'content-range': `bytes ${start}-${end - 1}/${size}` },
    body: held.bytes.subarray(start, end),
  };
}

/** UploadPart. */
export function putPart({ key, query, body }: Asked, bucket: Bucket): Answer {
  const upload = bucket.uploads.get(query.get('uploadId') ?? '');
  if (upload?.key !== key) return refuse(404, 'NoSuchUpload', key);
  const etag = etagOf(body);
  upload.parts.set(Number(query.get('partNumber')), { bytes: body, etag });
  return { status: 200, headers: { etag } };
}

/** DeleteObject and DeleteObjects. */
export function remove({ method, key, body }: Asked, bucket: Bucket): Answer {
  if (method === 'DELETE') {
    bucket.delete(key);
    return { status: 204 };
  }
  for (const name of textsOf(body.toString(), 'Key')) bucket.delete(name);
  return { status: 200, body: xmlDocument(element('DeleteResult')) };
}

/** ListMultipartUploads, in one page. */
export function listUploads(name: string, bucket: Bucket, prefix: string): Answer {
  const uploads = [...bucket.uploads.values()].filter(({ key }) => key.startsWith(prefix));
  return {
    status: 200,
    body: xmlDocument(
      element(
        'ListMultipartUploadsResult',
        textElement('Bucket', name),
        textElement('IsTruncated', false),
        ...uploads.map(({ key, id, startedMs }) =>
          element(
            'Upload',
            textElement('Key', key),
            textElement('UploadId', id),
            textElement('Initiated', new Date(startedMs).toISOString()),
          ),
        ),
      ),
    ),
  };
}
