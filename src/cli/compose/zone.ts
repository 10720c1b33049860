// What nodes of one rack read for each other: the owner of a flush serves pieces of it from its own chunks, so that the
// bucket is asked about once per zone. Over the operator's HTTP face, which every node has; each request proves by the
// cluster's secret that a node asks. Not for: what is cached, and what happens without an answer (storage/log/zone-source.ts).
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { FloeError } from '../../base/error.ts';
import type { Cluster, ClusterNode } from '../../cluster/index.ts';
import type { OpenedLog } from '../../storage/log/open-log.ts';
import type { ZonePeer, ZoneRange, ZoneSource } from '../../storage/log/zone-source.ts';
import { parseKey } from '../../storage/paths.ts';
import type { Membership } from './membership.ts';

export const ZONE_PATH = '/v1/zone';
const PROOF_HEADER = 'x-floe-proof';
/** More than any read call of the log. */
const MAX_PIECE_BYTES = 64 * 1024 * 1024;

export interface ZoneParts {
  readonly zone: Pick<ZoneSource, 'serve' | 'setOwners'>;
  readonly cluster: Pick<Cluster, 'self' | 'chosen'>;
  readonly clusterId: string;
  /** Of the cluster (`metadata.cluster.secret`). */
  readonly secret: Uint8Array;
}

/** Among several nodes over one bucket, those of a rack read flushes for each other. */
export function shareReads(
  app: FastifyInstance,
  { opened, place }: { readonly opened: OpenedLog; readonly place: Membership },
): void {
  const { zone, clusterId } = opened;
  const { cluster, secret } = place;
  if (zone !== undefined && secret !== undefined)
    shareZone(app, { zone, cluster, clusterId, secret });
}

/** From now on this node serves its zone by `app`, and asks the others of it. */
export function shareZone(app: FastifyInstance, parts: ZoneParts): void {
  serveZone(app, parts);
  const peers = new Map<number, { readonly session: string; readonly peer: ZonePeer }>();
  parts.zone.setOwners((key) => {
    const { self } = parts.cluster;
    const owner = parts.cluster.chosen(`zone/${key}`, 'front', self.rack);
    if (owner === undefined || owner.nodeId === self.nodeId || owner.rack !== self.rack)
      return undefined;
    if (owner.http === null) return undefined;
    let known = peers.get(owner.nodeId);
    if (known?.session !== owner.session) {
      known = { session: owner.session, peer: peerAt(owner, parts.secret) };
      peers.set(owner.nodeId, known);
    }
    return known.peer;
  });
}

function serveZone(app: FastifyInstance, { zone, clusterId, secret }: ZoneParts): void {
  app.get(ZONE_PATH, async (request, reply) => {
    const query = request.query as Partial<Record<'key' | 'start' | 'length', string>>;
    const { key = '' } = query;
    const range = { start: Number(query.start), length: Number(query.length) };
    const whole = Number.isSafeInteger(range.start) && Number.isSafeInteger(range.length);
    if (!whole || range.start < 0 || range.length < 0 || range.length > MAX_PIECE_BYTES)
      return reply.code(400).send({ message: 'start and length are whole numbers of bytes' });
    if (!proves(request.headers[PROOF_HEADER], proofOf(secret, key, range)))
      return reply.code(403).send({ message: 'only nodes of this cluster are served here' });
    if (parseKey(clusterId, key)?.kind !== 'wal')
      return reply.code(400).send({ message: 'the key is not that of a flush of this cluster' });
    const found = await zone.serve(key, range);
    const { buffer, byteOffset, length } = found;
    return reply.type('application/octet-stream').send(Buffer.from(buffer, byteOffset, length));
  });
}

function peerAt(owner: ClusterNode, secret: Uint8Array): ZonePeer {
  return {
    async read(key, range, signal) {
      const url = new URL(ZONE_PATH, owner.http!);
      url.search = new URLSearchParams({
        key,
        start: String(range.start),
        length: String(range.length),
      }).toString();
      const headers = { [PROOF_HEADER]: proofOf(secret, key, range).toString('hex') };
      const answer = await fetch(url, { headers, signal });
      const body = new Uint8Array(await answer.arrayBuffer());
      if (answer.ok) return body;
      throw new FloeError(
        'unavailable',
        `node ${owner.nodeId} answered ${answer.status} to ${key}`,
      );
    },
  };
}

function proofOf(secret: Uint8Array, key: string, { start, length }: ZoneRange): Buffer {
  return createHmac('sha256', secret).update(`zone\n${key}\n${start}\n${length}`).digest();
}

/** `given` is whatever a stranger puts into a header: its bytes are counted, not its characters. */
function proves(given: string | string[] | undefined, wanted: Buffer): boolean {
  if (typeof given !== 'string') return false;
  const shown = Buffer.from(given, 'hex');
  return shown.length === wanted.length && timingSafeEqual(shown, wanted);
}
