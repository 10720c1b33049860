// What `floe serve` is told: flags, a YAML file and --set, merged into one plain value.
// Precedence: flag, then --set, then file, then default. Not for: the settings' meaning (each folder's settings.ts).
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse } from 'yaml';
import { FloeError } from '../base/error.ts';
import { type Address, parseAddress } from './address.ts';

export interface ServeOptions {
  /** Absolute path of the data directory. */
  readonly dataDir: string;
  readonly kafka: Address;
  readonly registry: Address;
  readonly catalog: Address;
  readonly http: Address;
  /** `file:///…` or `s3://bucket/prefix`; undefined: a folder of the data directory. */
  readonly storage: string | undefined;
  /** `postgres://…`: this node is one of several on that database; undefined: it is alone, with SQLite. */
  readonly metadata: string | undefined;
  /** This node's id in its cluster; undefined: the cluster assigns one. */
  readonly nodeId: number | undefined;
  /** By name, as text, not yet checked. */
  readonly settings: Readonly<Record<string, string>>;
}

/** The flags as commander hands them over; all optional so that a file can say them. */
export interface ServeFlags {
  readonly dataDir?: string;
  readonly kafka?: string;
  readonly registry?: string;
  readonly catalog?: string;
  readonly http?: string;
  readonly storage?: string;
  readonly metadata?: string;
  readonly nodeId?: string;
  readonly rack?: string;
  readonly roles?: string;
  readonly advertise?: string;
  readonly s3Endpoint?: string;
  readonly config?: string;
  readonly set: readonly string[];
}

const DEFAULTS = {
  'data-dir': './floe-data',
  kafka: '127.0.0.1:9092',
  registry: '127.0.0.1:8081',
  catalog: '127.0.0.1:8181',
  http: '127.0.0.1:8080',
} as const;

const OPTION_NAMES = [
  'data-dir',
  'kafka',
  'registry',
  'catalog',
  'http',
  'storage',
  'metadata',
] as const;

/** Flags that are settings under a shorter name. */
const SETTING_FLAGS = [
  ['nodeId', 'node-id', 'node.id'],
  ['rack', 'rack', 'broker.rack'],
  ['roles', 'roles', 'node.roles'],
  ['s3Endpoint', 's3-endpoint', 's3.endpoint'],
] as const;

/** Kafka's name of the setting `node.id` before KRaft. */
const NODE_ID_NAMES = ['node.id', 'broker.id'] as const;

/** @throws FloeError `invalid` naming flag or file, value and remedy. */
export function serveOptions(flags: ServeFlags): ServeOptions {
  const file = flags.config === undefined ? {} : readConfigFile(flags.config);
  const settings: Record<string, string> = {};
  for (const [name, value] of Object.entries(file)) {
    if (!(OPTION_NAMES as readonly string[]).includes(name)) settings[name] = value;
  }
  for (const pair of flags.set) {
    const at = pair.indexOf('=');
    if (at < 1) throw new FloeError('invalid', `--set: "${pair}" is not key=value`);
    settings[pair.slice(0, at).trim()] = pair.slice(at + 1);
  }
  for (const [flag, option, setting] of SETTING_FLAGS) {
    const value = flags[flag] ?? settings[option];
    delete settings[option];
    if (value !== undefined) settings[setting] = value;
  }
  advertise(flags.advertise ?? settings['advertise'], settings);
  const address = (name: 'kafka' | 'registry' | 'catalog' | 'http') =>
    parseAddress(`--${name}`, flags[name] ?? file[name] ?? DEFAULTS[name]);
  const storage = flags.storage ?? file['storage'];
  if (storage !== undefined && !/^(file:\/\/\/|s3:\/\/[^/]+)/.test(storage)) {
    throw new FloeError(
      'invalid',
      `--storage: "${storage}" is not file:///folder or s3://bucket/prefix`,
    );
  }
  const metadata = metadataOption(flags.metadata ?? file['metadata'], storage);
  return {
    dataDir: resolve(flags.dataDir ?? file['data-dir'] ?? DEFAULTS['data-dir']),
    kafka: address('kafka'),
    registry: address('registry'),
    catalog: address('catalog'),
    http: address('http'),
    storage: storage?.replace(/\/+$/, ''),
    metadata,
    nodeId: givenNodeId(settings),
    settings,
  };
}

function metadataOption(
  metadata: string | undefined,
  storage: string | undefined,
): string | undefined {
  if (metadata === undefined) return undefined;
  if (!/^postgres(ql)?:\/\/[^/]/.test(metadata)) {
    // What is given may hold a password.
    const text = 'is not postgres://user:password@host:port/database';
    throw new FloeError('invalid', `--metadata: "${metadata.replace(/:[^:@/]*@/, ':…@')}" ${text}`);
  }
  // A folder of the data directory is this machine's alone. A file:// URI is the operator's word that all brokers share it.
  if (storage === undefined) {
    throw new FloeError(
      'invalid',
      '--metadata postgres://… is for brokers that share their storage: say --storage s3://bucket/prefix, or file:///folder if it is one that all of them see',
    );
  }
  return metadata;
}

/** `--advertise` is the address of the first listener. */
function advertise(given: string | undefined, settings: Record<string, string>): void {
  delete settings['advertise'];
  if (given === undefined) return;
  parseAddress('--advertise', given);
  if (settings['advertised.listeners'] !== undefined) {
    throw new FloeError(
      'invalid',
      `--advertise: "${given}": advertised.listeners says it already, for each listener: take one of them away`,
    );
  }
  const [, first = 'PLAINTEXT'] = /^\s*(\w+):\/\//.exec(settings['listeners'] ?? '') ?? [];
  settings['advertised.listeners'] = `${first}://${given}`;
}

function givenNodeId(settings: Readonly<Record<string, string>>): number | undefined {
  const name = NODE_ID_NAMES.find((candidate) => settings[candidate] !== undefined);
  // What is no number is refused where settings are resolved.
  return name === undefined ? undefined : Number(settings[name]);
}

/** Nested maps become dotted names, so `num: {partitions: 4}` and `num.partitions: 4` are the same. */
function readConfigFile(path: string): Record<string, string> {
  let content: unknown;
  try {
    content = parse(readFileSync(path, 'utf8'));
  } catch (caught) {
    throw new FloeError('invalid', `--config ${path}: ${(caught as Error).message}`, {
      cause: caught,
    });
  }
  if (content === null || content === undefined) return {};
  if (typeof content !== 'object' || Array.isArray(content)) {
    throw new FloeError('invalid', `--config ${path}: the file must be a map of names to values`);
  }
  const flat: Record<string, string> = {};
  flatten('', content as Record<string, unknown>, flat);
  return flat;
}

function flatten(
  prefix: string,
  value: Readonly<Record<string, unknown>>,
  into: Record<string, string>,
): void {
  for (const [name, inner] of Object.entries(value)) {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    if (Array.isArray(inner)) into[path] = inner.join(',');
    else if (typeof inner === 'object' && inner !== null)
      flatten(path, inner as Record<string, unknown>, into);
    else into[path] = String(inner ?? '');
  }
}
