// The schemas of one topic, looked up in the registry and turned into the columns they would like, or into the reason
// why their records are dead letters. Decides nothing about the table: binding.ts takes the proposals to it.
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { ProposedStruct } from '../../formats/arrow/proposed-schema.ts';
import type { RegisteredSchema, SchemaSource } from '../../schema-registry/schema-source.ts';
import type { SourceBinding } from '../job.ts';
import type { TopicConfigs } from '../settings/index.ts';
import { sourceFormat } from './formats.ts';
import type { Place, SchemaText, Side, TypeOptions } from './source.ts';
import { fixedSubject, latestMessage, subjectOf } from './subjects.ts';
import { LATEST_KEY, type SourceKey, splitKey } from './wire.ts';

/** A schema id that nobody knows is asked for again after this long: registering it late cures new records. */
const UNKNOWN_SCHEMA_MS = 10_000;

/** The newest version of a subject, which values without a mark are decoded by, is asked for again after this long. */
const LATEST_SCHEMA_MS = 60_000;

/** What a schema would like of the table. */
export interface Proposal {
  readonly kind: 'proposed';
  readonly text: SchemaText;
  readonly columns: ProposedStruct;
  /** Only the newest version of its subject may rename; a schema of no known subject never does. */
  readonly mayRename: boolean;
  /** Protobuf by schema id: other messages of the schema are proposals of their own. */
  readonly hasMessages: boolean;
  /** For people. */
  readonly name: string;
}

export type Refusal = Extract<SourceBinding, { kind: 'refused' }> & {
  readonly hasMessages: boolean;
};

export interface TopicSourcesDeps {
  readonly schemas: SchemaSource;
  readonly clock: Clock;
}

export interface TopicSourcesOptions {
  readonly topicName: string;
  readonly config: TopicConfigs;
}

export class TopicSources {
  readonly #deps: TopicSourcesDeps;
  readonly #options: TopicSourcesOptions;
  #unknownSinceMs: number | undefined;
  #latestSinceMs: number | undefined;

  constructor(deps: TopicSourcesDeps, options: TopicSourcesOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Columns of the value's newest schema, before any record was read. Undefined: none is known, or none can be had. */
  async newest(): Promise<ProposedStruct | undefined> {
    try {
      return await newestColumns(this.#deps.schemas, this.#options);
    } catch (caught) {
      // Its records will be dead letters, and say why.
      if (isFloeError(caught, 'invalid')) return undefined;
      throw caught;
    }
  }

  /** What the schema under a key would like. @throws FloeError `unavailable` and the like: nobody's fault. */
  async propose(key: SourceKey, side: Side): Promise<Proposal | Refusal> {
    const { schema, message } = splitKey(key);
    const latest = schema === LATEST_KEY;
    if (latest) this.#latestSinceMs ??= this.#deps.clock.monotonic();
    const found = latest ? await this.#latestOf(side) : await this.#lookUp(schema);
    if (found === undefined) return this.#unknown(schema, side);
    const name = latest ? `schema ${found.id}` : `schema ${schema}`;
    let perMessage = false;
    try {
      const whole = schemaText(found);
      const format = sourceFormat(found.type);
      perMessage = format.hasMessages && !latest && format.messages(whole).length > 0;
      const text = latest
        ? latestMessage(whole, this.#options.config, side)
        : messageText(whole, message);
      const columns = sourceFormat(text.type).propose(text, this.#place(side), this.#types());
      const mayRename = latest || (await this.#isNewest(found, text, side));
      return { kind: 'proposed', text, columns, mayRename, hasMessages: perMessage, name };
    } catch (caught) {
      if (!isFloeError(caught, 'invalid')) throw caught;
      const none = caught.details?.['reason'] === 'no_row';
      const reason = none ? 'no_row' : 'unsupported_schema';
      const error = `${name}: ${caught.message}`;
      return { kind: 'refused', reason, error, hasMessages: perMessage };
    }
  }

  /** True once when ids that were unknown are worth another look. */
  unknownExpired(): boolean {
    if (!this.#isOver(this.#unknownSinceMs, UNKNOWN_SCHEMA_MS)) return false;
    this.#unknownSinceMs = undefined;
    return true;
  }

  /** True once when the newest version is worth another look. */
  latestExpired(): boolean {
    if (!this.#isOver(this.#latestSinceMs, LATEST_SCHEMA_MS)) return false;
    this.#latestSinceMs = undefined;
    return true;
  }

  #isOver(sinceMs: number | undefined, afterMs: number): boolean {
    return sinceMs !== undefined && this.#deps.clock.monotonic() - sinceMs >= afterMs;
  }

  #unknown(schema: string, side: Side): Refusal {
    this.#unknownSinceMs ??= this.#deps.clock.monotonic();
    const what =
      schema === LATEST_KEY
        ? `subject "${fixedSubject(this.#options, side)}"`
        : `${/^\d+$/.test(schema) ? 'schema id' : 'schema guid'} ${schema}`;
    const error = `${what} is not registered`;
    return { kind: 'refused', reason: 'unknown_schema_id', error, hasMessages: false };
  }

  #lookUp(schema: string): Promise<RegisteredSchema | undefined> {
    const { schemas } = this.#deps;
    const byId = /^\d+$/.test(schema);
    return found(byId ? schemas.byId(Number(schema)) : schemas.byGuid(schema));
  }

  #latestOf(side: Side): Promise<RegisteredSchema | undefined> {
    return found(this.#deps.schemas.latest(fixedSubject(this.#options, side)));
  }

  async #isNewest(schema: RegisteredSchema, text: SchemaText, side: Side): Promise<boolean> {
    const subject = subjectOf(text, this.#options, side);
    if (subject === undefined) return false;
    const latest = await found(this.#deps.schemas.latest(subject));
    if (latest === undefined) return false;
    // By GUID a registry may not tell the id.
    return latest.id === schema.id || (latest.guid !== '' && latest.guid === schema.guid);
  }

  #place(side: Side): Place {
    return placeOf(this.#options.config, side);
  }

  #types(): TypeOptions {
    return typeOptions(this.#options.config);
  }
}

/**
 * Columns of the newest schema of a topic's value, as far as it can be known before any record is read. Undefined: no
 * schema, or one of several messages that only records tell apart.
 * @throws FloeError `invalid` when the schema makes no columns.
 */
export async function newestColumns(
  schemas: SchemaSource,
  options: TopicSourcesOptions,
): Promise<ProposedStruct | undefined> {
  const { config } = options;
  const latest = await found(schemas.latest(fixedSubject(options, 'value')));
  if (latest === undefined) return undefined;
  const format = sourceFormat(latest.type);
  const whole = schemaText(latest);
  const byId = config['table.topic.convert.value.type'] === 'by_schema_id';
  if (byId && format.messages(whole).length > 1) return undefined;
  const text = byId ? whole : latestMessage(whole, config, 'value');
  return format.propose(text, placeOf(config, 'value'), typeOptions(config));
}

const PLACES = { flatten: 'flattened', none: 'value', flatten_debezium: 'debezium' } as const;

/** Where values or keys of a topic land. */
export function placeOf(
  config: Pick<TopicConfigs, 'table.topic.transform.value.type'>,
  side: Side,
): Place {
  if (side === 'key') return 'key';
  return PLACES[config['table.topic.transform.value.type']];
}

const typeOptions = (config: TopicConfigs): TypeOptions => ({
  time: config['table.topic.types.time'],
  nanos: config['table.topic.types.nanos'],
});

/** The plain text of a registered schema, as it goes to workers. */
const schemaText = ({ type, schema, resolved }: RegisteredSchema): SchemaText => ({
  type,
  schema,
  references: [...resolved].map(([name, text]) => ({ name, schema: text })),
});

/** The message that indexes lead to; the text as it is where schemas have no messages. */
function messageText(text: SchemaText, indexes: string): SchemaText {
  const format = sourceFormat(text.type);
  if (!format.hasMessages) return text;
  if (indexes === '') throw new FloeError('invalid', 'the message indexes are malformed');
  return { ...text, message: format.messageAt(text, indexes) };
}

/** Undefined when the registry doesn't know. */
async function found<T>(look: Promise<T>): Promise<T | undefined> {
  try {
    return await look;
  } catch (caught) {
    if (isFloeError(caught, 'not-found')) return undefined;
    throw caught;
  }
}
