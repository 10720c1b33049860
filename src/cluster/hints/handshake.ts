// How two nodes know each other: both show that they have the cluster's secret, by HMAC-SHA256 over both fresh numbers,
// both nodes and lives, the cluster and the side that proves (so that neither an old answer nor one's own can be used).
//
//   connects → hello(from, to, session, nonce, cluster)     accepts → challenge(session, nonce, proof)
//   connects → proof                                        then hints
//
// Sans I/O: frames in, frames out. Not for: secrecy — hints say nothing that matters.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { FloeError } from '../../base/error.ts';
import type { Prng } from '../../base/prng.ts';
import { uuidToBytes } from '../../base/prng.ts';
import { type Challenge, type Frame, type Hello, NONCE_BYTES } from './frames.ts';

/** This node, as the other is told. */
export interface Identity {
  readonly clusterId: string;
  /** Of the cluster, at least 32 bytes. */
  readonly secret: Uint8Array;
  readonly nodeId: number;
  readonly session: string;
  readonly level: number;
}

/** What both sides sign. */
interface Transcript {
  readonly hello: Hello;
  readonly challenge: Pick<Challenge, 'session' | 'nonce'>;
}

function proofOf(
  side: 'accepts' | 'connects',
  secret: Uint8Array,
  { hello, challenge }: Transcript,
): Buffer {
  const numbers = Buffer.alloc(10);
  numbers.writeUInt32BE(hello.from);
  numbers.writeUInt32BE(hello.to, 4);
  numbers.writeUInt16BE(hello.level, 8);
  return createHmac('sha256', secret)
    .update(`floe hints, ${side}\0${hello.clusterId}\0`)
    .update(numbers)
    .update(uuidToBytes(hello.session))
    .update(uuidToBytes(challenge.session))
    .update(hello.nonce)
    .update(challenge.nonce)
    .digest();
}

const refuse = (why: string) => new FloeError('unauthorized', why);

/** The side that was connected to. */
export class Accepting {
  readonly #identity: Identity;
  readonly #prng: Prng;
  #transcript: Transcript | undefined;
  #peer: number | undefined;

  constructor(identity: Identity, prng: Prng) {
    this.#identity = identity;
    this.#prng = prng;
  }

  /** The other node once it is known. */
  get peer(): number | undefined {
    return this.#peer;
  }

  /** What to answer, if anything. @throws FloeError `unauthorized`. */
  take(frame: Frame): Frame | undefined {
    if (this.#transcript === undefined && frame.type === 'hello') return this.#challenge(frame);
    if (this.#transcript !== undefined && frame.type === 'proof') {
      const wanted = proofOf('connects', this.#identity.secret, this.#transcript);
      if (!timingSafeEqual(wanted, frame.proof)) throw refuse('it does not know the secret');
      this.#peer = this.#transcript.hello.from;
      return undefined;
    }
    throw refuse(`a frame of type ${frame.type} out of turn`);
  }

  #challenge(hello: Hello): Challenge {
    const { clusterId, nodeId, session, secret } = this.#identity;
    if (hello.clusterId !== clusterId) throw refuse('it is of another cluster');
    if (hello.to !== nodeId) throw refuse('it looks for another node');
    const challenge = { session, nonce: this.#prng.bytes(NONCE_BYTES) };
    this.#transcript = { hello, challenge };
    return { type: 'challenge', ...challenge, proof: proofOf('accepts', secret, this.#transcript) };
  }
}

/** The side that connects. */
export class Connecting {
  readonly hello: Hello;
  readonly #secret: Uint8Array;
  readonly #peerSession: string;

  /** To the life of `peer` that is known of. */
  constructor(
    identity: Identity,
    peer: { readonly nodeId: number; readonly session: string },
    prng: Prng,
  ) {
    const { clusterId, nodeId, session, level, secret } = identity;
    this.#secret = secret;
    this.#peerSession = peer.session;
    const nonce = prng.bytes(NONCE_BYTES);
    this.hello = { type: 'hello', level, from: nodeId, to: peer.nodeId, session, nonce, clusterId };
  }

  /** The last word, after which hints may be sent. @throws FloeError `unauthorized`; `conflict` for another life. */
  take(frame: Frame): Frame {
    if (frame.type !== 'challenge') throw refuse(`a frame of type ${frame.type} out of turn`);
    const transcript = { hello: this.hello, challenge: frame };
    const wanted = proofOf('accepts', this.#secret, transcript);
    if (!timingSafeEqual(wanted, frame.proof)) throw refuse('it does not know the secret');
    // Known to be ours, but not the one that is meant: the view of nodes will tell soon.
    if (frame.session !== this.#peerSession)
      throw new FloeError('conflict', 'it is another life of the node');
    return { type: 'proof', proof: proofOf('connects', this.#secret, transcript) };
  }
}
