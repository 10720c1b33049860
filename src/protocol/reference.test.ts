// Holds our definitions against Kafka's own, where its files are at hand: every message, every version, every field
// with type, nullability, tag and default. What is written by hand elsewhere can't drift from the protocol.
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { requestHeaderVersion } from './api.ts';
import { ALL_APIS } from './apis.ts';
import type { Message } from './compile.ts';
import { requestHeader, responseHeader } from './envelope.ts';
import { KAFKA_ERRORS } from './errors.ts';
import { type FieldData, INT64_MAX, type Schema, ZERO_UUID } from './fields.ts';
import { consumerAssignment, consumerSubscription } from './messages/consumer-protocol.ts';
import { inVersions, parseVersions } from './versions.ts';

const FOLDER = resolve(import.meta.dirname, '../../../shared/data/kafka-messages');

interface ReferenceField {
  readonly name: string;
  readonly type: string;
  readonly versions: string;
  readonly nullableVersions?: string;
  readonly taggedVersions?: string;
  readonly tag?: number;
  readonly default?: string | boolean | number;
  readonly flexibleVersions?: string;
  readonly fields?: readonly ReferenceField[];
}

interface ReferenceMessage {
  readonly flexibleVersions: string;
  readonly fields: readonly ReferenceField[];
  readonly commonStructs?: readonly { name: string; fields: readonly ReferenceField[] }[];
}

function reference(name: string): ReferenceMessage {
  return JSON.parse(readFileSync(`${FOLDER}/${name}.json`, 'utf8')) as ReferenceMessage;
}

function table(name: string): string[][] {
  const [, ...rows] = readFileSync(`${FOLDER}/${name}.tsv`, 'utf8').trim().split('\n');
  return rows.map((row) => row.split('\t'));
}

const camelCase = (name: string) => name[0]!.toLowerCase() + name.slice(1);

/** One line per field of Kafka's message in `version`, in wire order. */
function referenceLines(from: ReferenceMessage, version: number): string[] {
  const common = new Map((from.commonStructs ?? []).map((entry) => [entry.name, entry.fields]));
  const walk = (fields: readonly ReferenceField[], path: string): string[] =>
    fields
      .filter((field) => inVersions(parseVersions(field.versions), version))
      .flatMap((field) => {
        const isArray = field.type.startsWith('[]');
        const base = isArray ? field.type.slice(2) : field.type;
        const inner = field.fields ?? common.get(base);
        const kind = `${isArray ? '[]' : ''}${inner === undefined ? base : 'struct'}`;
        const name = `${path}${camelCase(field.name)}`;
        const facts = [
          name,
          kind,
          inVersions(parseVersions(field.nullableVersions ?? 'none'), version) ? 'nullable' : '',
          inVersions(parseVersions(field.taggedVersions ?? 'none'), version)
            ? `tag ${field.tag}`
            : '',
          referenceDefault(field, kind),
          field.flexibleVersions === 'none' ? 'classic length' : '',
        ];
        return [facts.join('|'), ...(inner === undefined ? [] : walk(inner, `${name}.`))];
      });
  return walk(from.fields, '');
}

function referenceDefault(field: ReferenceField, kind: string): string {
  if (field.default === 'null') return 'null';
  if (kind.startsWith('[]')) return '[]';
  if (kind === 'struct') return 'struct';
  if (kind === 'bool') return String(field.default ?? false);
  if (kind === 'string') return JSON.stringify(field.default ?? '');
  if (kind === 'uuid') return ZERO_UUID;
  if (kind === 'bytes' || kind === 'records') return 'bytes';
  const number = Number(field.default ?? 0);
  return String(number > Number.MAX_SAFE_INTEGER ? INT64_MAX : number);
}

/** The same lines from our definition. */
function ourLines(schema: Schema, version: number, path = ''): string[] {
  return Object.entries(schema)
    .filter(([, field]) => inVersions(field.versions, version))
    .flatMap(([name, field]) => {
      const inner = field.fields ?? field.element?.fields;
      const facts = [
        `${path}${name}`,
        field.kind === 'array' ? `[]${field.element!.kind}` : field.kind,
        inVersions(field.nullVersions, version) ? 'nullable' : '',
        field.tagNumber === undefined ? '' : `tag ${field.tagNumber}`,
        ourDefault(field),
        field.neverCompact ? 'classic length' : '',
      ];
      return [
        facts.join('|'),
        ...(inner === undefined ? [] : ourLines(inner, version, `${path}${name}.`)),
      ];
    });
}

function ourDefault(field: FieldData): string {
  const { fallback, kind } = field;
  if (fallback === null) return 'null';
  if (kind === 'struct') return 'struct';
  if (kind === 'array') return JSON.stringify(fallback);
  if (kind === 'string') return JSON.stringify(fallback);
  if (fallback instanceof Uint8Array) return 'bytes';
  return String(fallback);
}

// biome-ignore lint/suspicious/noExplicitAny: any message.
function expectSame(ours: Message<any>, name: string): void {
  const theirs = reference(name);
  const flexible = parseVersions(theirs.flexibleVersions);
  for (let version = ours.versions.min; version <= ours.versions.max; version += 1) {
    expect(ourLines(ours.schema, version), `${name} v${version}`).toEqual(
      referenceLines(theirs, version),
    );
    expect(inVersions(ours.flexibleVersions, version)).toBe(inVersions(flexible, version));
  }
}

describe.skipIf(!existsSync(FOLDER))('our messages are Kafka’s', () => {
  const withFile = ALL_APIS.filter(({ name }) => existsSync(`${FOLDER}/${name}Request.json`));
  it.each(withFile.map((api) => [api.name, api] as const))('%s', (name, api) => {
    expectSame(api.request, `${name}Request`);
    expectSame(api.response, `${name}Response`);
  });

  it('headers and the consumer protocol', () => {
    expectSame(requestHeader, 'RequestHeader');
    expectSame(responseHeader, 'ResponseHeader');
    expectSame(consumerSubscription, 'ConsumerProtocolSubscription');
    expectSame(consumerAssignment, 'ConsumerProtocolAssignment');
  });

  it('keys, versions and header versions', () => {
    const known = new Map(ALL_APIS.map((api) => [api.key, api]));
    for (const [key, name, min, max, , , header] of table('api-keys')) {
      const api = known.get(Number(key));
      if (api === undefined) {
        expect(existsSync(`${FOLDER}/${name}Request.json`), `${name} is not defined`).toBe(false);
        continue;
      }
      known.delete(Number(key));
      expect([api.name, api.minVersion, api.maxVersion]).toEqual([name, Number(min), Number(max)]);
      expect(requestHeaderVersion(api, api.maxVersion)).toBe(Number(header));
    }
    expect([...known.keys()]).toEqual([]);
  });

  it('errors', () => {
    const ours = KAFKA_ERRORS.map(({ code, name, retriable }) => [code, name, retriable].join());
    expect(ours).toEqual(table('errors').map((row) => row.join()));
  });
});
