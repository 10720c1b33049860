// What the kill test kills: one node on a local folder, or three brokers over PostgreSQL and an S3 double.
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import type { Prng } from '../../src/base/prng.ts';
import { type ChildNode, startChild } from '../../src/cli/child.ts';
import { TestCluster } from '../cluster/cluster.ts';

export interface KillTarget {
  /** Starts whatever is down. */
  up(): Promise<void>;
  /** SIGKILL for one, whichever chance says. */
  kill(prng: Prng): Promise<void>;
  /** One that is up. */
  readonly node: ChildNode;
  /** HOST:PORT of all that are up. */
  readonly brokers: readonly string[];
  /** Base names of the data files that lie in the warehouse. */
  dataFiles(): Promise<string[]>;
  /** A file of a table by its URI. */
  read(uri: string): Promise<Uint8Array>;
  /** SIGTERM for all. @returns true when each ended with exit code 0. */
  stop(): Promise<boolean>;
}

export async function oneNode(folder: string, settings: readonly string[]): Promise<KillTarget> {
  let node: ChildNode | undefined;
  return {
    async up() {
      node ??= await startChild(folder, settings);
    },
    async kill() {
      await node!.kill();
      node = undefined;
    },
    get node() {
      return node!;
    },
    get brokers() {
      return [node!.addresses.kafka];
    },
    async dataFiles() {
      const names = await readdir(folder, { recursive: true });
      return names.filter((name) => name.endsWith('.parquet')).map((name) => basename(name));
    },
    read: (uri) => readFile(new URL(uri)),
    async stop() {
      const code = await node?.stop();
      node = undefined;
      return code === 0;
    },
  };
}

export async function threeBrokers(
  folder: string,
  settings: readonly string[],
): Promise<KillTarget> {
  const cluster = await TestCluster.start({
    folder,
    brokers: 3,
    racks: ['a', 'b'],
    putMs: 20,
    getMs: 5,
    arguments: settings,
  });
  const s3 = new S3Client({
    endpoint: cluster.s3.endpoint,
    forcePathStyle: true,
    region: 'us-east-1',
    credentials: { accessKeyId: 'floe', secretAccessKey: 'floe-secret' },
  });
  const up = () => cluster.members.filter((member) => member.up);
  return {
    async up() {
      for (const member of cluster.members) if (!member.up) await member.start();
    },
    async kill(prng) {
      const members = up();
      await members[prng.int(members.length)]!.kill();
    },
    get node() {
      return cluster.anyNode;
    },
    get brokers() {
      return up().map(({ kafka }) => kafka);
    },
    async dataFiles() {
      const found: string[] = [];
      for (let token: string | undefined, more = true; more; more = token !== undefined) {
        const page = await s3.send(
          new ListObjectsV2Command({ Bucket: 'floe', ContinuationToken: token }),
        );
        for (const { Key = '' } of page.Contents ?? [])
          if (Key.endsWith('.parquet')) found.push(basename(Key));
        token = page.NextContinuationToken;
      }
      return found;
    },
    async read(uri) {
      const { host, pathname } = new URL(uri);
      const key = decodeURIComponent(pathname.slice(1));
      const { Body } = await s3.send(new GetObjectCommand({ Bucket: host, Key: key }));
      return Body!.transformToByteArray();
    },
    async stop() {
      const codes = await Promise.all(up().map((member) => member.stop()));
      await cluster.stop();
      s3.destroy();
      return codes.every((code) => code === 0);
    },
  };
}
