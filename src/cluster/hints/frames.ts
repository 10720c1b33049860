// Frames between nodes: a length of four bytes, a type, a body of fixed layout; numbers are big-endian. Small on purpose:
// what exceeds a kilobyte is no frame of ours. Parsing allocates nothing for what it refuses.
// Not for: who may send what when (handshake.ts).
import { FloeError } from '../../base/error.ts';
import { uuidToBytes, uuidToText } from '../../base/prng.ts';

/** Of a frame without its length. */
export const MAX_FRAME_BYTES = 256;
export const NONCE_BYTES = 32;
/** HMAC-SHA256. */
export const PROOF_BYTES = 32;
const SESSION_BYTES = 16;
const LENGTH_BYTES = 4;

/** First words of whoever connects: who it is, whom it wants, and a fresh number. */
export interface Hello {
  readonly type: 'hello';
  /** The cluster's level by which it speaks. */
  readonly level: number;
  readonly from: number;
  readonly to: number;
  /** Canonical UUID text. */
  readonly session: string;
  readonly nonce: Uint8Array;
  readonly clusterId: string;
}

/** The answer: the other's life and fresh number, and the proof that it knows the secret. */
export interface Challenge {
  readonly type: 'challenge';
  readonly session: string;
  readonly nonce: Uint8Array;
  readonly proof: Uint8Array;
}

export interface Proof {
  readonly type: 'proof';
  readonly proof: Uint8Array;
}

/** There are commits up to this number; `news` has risen since the last one if nodes or leases have changed. */
export interface Hint {
  readonly type: 'hint';
  readonly commit: number;
  readonly news: number;
}

export type Frame = Hello | Challenge | Proof | Hint;

const TYPES = { hello: 1, challenge: 2, proof: 3, hint: 4 } as const;
const MAGIC = Buffer.from('FLOE');

/** A frame with its length. */
export function encodeFrame(frame: Frame): Buffer {
  const body = encodeBody(frame);
  const bytes = Buffer.alloc(LENGTH_BYTES + 1 + body.length);
  bytes.writeUInt32BE(1 + body.length);
  bytes[LENGTH_BYTES] = TYPES[frame.type];
  body.copy(bytes, LENGTH_BYTES + 1);
  return bytes;
}

function encodeBody(frame: Frame): Buffer {
  if (frame.type === 'hello') {
    const head = Buffer.alloc(10);
    head.writeUInt16BE(frame.level);
    head.writeUInt32BE(frame.from, 2);
    head.writeUInt32BE(frame.to, 6);
    const id = Buffer.from(frame.clusterId);
    return Buffer.concat([MAGIC, head, uuidToBytes(frame.session), frame.nonce, id]);
  }
  if (frame.type === 'challenge')
    return Buffer.concat([uuidToBytes(frame.session), frame.nonce, frame.proof]);
  if (frame.type === 'proof') return Buffer.from(frame.proof);
  const body = Buffer.alloc(12);
  body.writeDoubleBE(frame.commit);
  body.writeUInt32BE(frame.news, 8);
  return body;
}

/** @throws FloeError `invalid` for what isn't a frame. */
function decodeFrame(bytes: Buffer): Frame {
  const body = bytes.subarray(1);
  switch (bytes[0]) {
    case TYPES.hello:
      return decodeHello(body);
    case TYPES.challenge:
      sized(body, SESSION_BYTES + NONCE_BYTES + PROOF_BYTES);
      return {
        type: 'challenge',
        session: uuidToText(body.subarray(0, SESSION_BYTES)),
        nonce: copy(body, SESSION_BYTES, NONCE_BYTES),
        proof: copy(body, SESSION_BYTES + NONCE_BYTES, PROOF_BYTES),
      };
    case TYPES.proof:
      sized(body, PROOF_BYTES);
      return { type: 'proof', proof: copy(body, 0, PROOF_BYTES) };
    case TYPES.hint:
      sized(body, 12);
      return { type: 'hint', commit: safeInteger(body.readDoubleBE()), news: body.readUInt32BE(8) };
    default:
      throw new FloeError('invalid', `there is no frame of type ${bytes[0]}`);
  }
}

const HELLO_HEAD = MAGIC.length + 10 + SESSION_BYTES + NONCE_BYTES;

function decodeHello(body: Buffer): Hello {
  if (body.length < HELLO_HEAD || !body.subarray(0, MAGIC.length).equals(MAGIC))
    throw new FloeError('invalid', 'this is no node of Floe');
  const at = MAGIC.length;
  return {
    type: 'hello',
    level: body.readUInt16BE(at),
    from: body.readUInt32BE(at + 2),
    to: body.readUInt32BE(at + 6),
    session: uuidToText(body.subarray(at + 10, at + 10 + SESSION_BYTES)),
    nonce: copy(body, at + 10 + SESSION_BYTES, NONCE_BYTES),
    clusterId: body.toString('utf8', HELLO_HEAD),
  };
}

function sized(body: Buffer, bytes: number): void {
  if (body.length !== bytes)
    throw new FloeError('invalid', `a frame of ${body.length} bytes, not ${bytes}`);
}

function safeInteger(value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new FloeError('invalid', `${value} is no number of a commit`);
}

const copy = (body: Buffer, at: number, bytes: number) =>
  new Uint8Array(body.subarray(at, at + bytes));

/** Cuts what arrives into frames. Holds at most one frame. */
export class FrameParser {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that are complete now. @throws FloeError `invalid`: nothing of this peer can be trusted any more. */
  *push(chunk: Uint8Array): Iterable<Frame> {
    let bytes = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      if (bytes.length < LENGTH_BYTES) break;
      const length = bytes.readUInt32BE();
      if (length < 1 || length > MAX_FRAME_BYTES)
        throw new FloeError('invalid', `a frame of ${length} bytes, not 1 to ${MAX_FRAME_BYTES}`);
      if (bytes.length < LENGTH_BYTES + length) break;
      const frame = decodeFrame(bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + length));
      bytes = bytes.subarray(LENGTH_BYTES + length);
      yield frame;
    }
    this.#rest = Buffer.from(bytes);
  }
}
