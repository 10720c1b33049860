// The schemas of one topic, looked up in the registry and turned into the columns they would like, or into the reason
// why their records are dead letters. Decides nothing about the table: binding.ts takes the proposals to it.
import type { Clock } from '../../base/clock.ts';
import { isFloeError } from '../../base/error.ts';
import type { ProposedStruct } from '../../formats/arrow/proposed-schema.ts';
import type { RegisteredSchema, SchemaSource } from '../../schema-registry/schema-source.ts';
import type { SourceBinding } from '../job.ts';
import type { TopicConfigs } from '../settings.ts';
import { sourceFormat } from './formats.ts';
import type { Place, SchemaText, Side, TypeOptions } from './source.ts';

/** A schema id that nobody knows is asked for again after this long: registering it late cures new records. */
const UNKNOWN_SCHEMA_MS = 10_000;

/** What a schema would like of the table. */
export interface Proposal {
  readonly kind: 'proposed';
  readonly text: SchemaText;
  readonly columns: ProposedStruct;
  /** Only the newest version of its subject may rename; a schema of no known subject never does. */
  readonly mayRename: boolean;
}

export type Refusal = Extract<SourceBinding, { kind: 'refused' }>;

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

  constructor(deps: TopicSourcesDeps, options: TopicSourcesOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Columns of the value's newest schema, before any record was read. Undefined: none is known, or none can be had. */
  async newest(): Promise<ProposedStruct | undefined> {
    const latest = await this.#latest('value');
    if (latest === undefined) return undefined;
    const columns = this.#columnsOf(latest, 'value');
    return 'reason' in columns ? undefined : columns;
  }

  /** What the schema under a wire id would like. @throws FloeError `unavailable` and the like: nobody's fault. */
  async propose(id: number, side: Side): Promise<Proposal | Refusal> {
    let schema: RegisteredSchema;
    try {
      schema = await this.#deps.schemas.byId(id);
    } catch (caught) {
      if (!isFloeError(caught, 'not-found')) throw caught;
      this.#unknownSinceMs ??= this.#deps.clock.monotonic();
      const error = `schema id ${id} is not registered`;
      return { kind: 'refused', reason: 'unknown_schema_id', error };
    }
    const columns = this.#columnsOf(schema, side);
    if ('reason' in columns) return columns;
    const mayRename = (await this.#latest(side))?.id === id;
    return { kind: 'proposed', text: schemaText(schema), columns, mayRename };
  }

  /** True once when ids that were unknown are worth another look. */
  unknownExpired(): boolean {
    const since = this.#unknownSinceMs;
    if (since === undefined) return false;
    if (this.#deps.clock.monotonic() - since < UNKNOWN_SCHEMA_MS) return false;
    this.#unknownSinceMs = undefined;
    return true;
  }

  async #latest(side: Side): Promise<RegisteredSchema | undefined> {
    try {
      return await this.#deps.schemas.latest(`${this.#options.topicName}-${side}`);
    } catch (caught) {
      if (isFloeError(caught, 'not-found')) return undefined;
      throw caught;
    }
  }

  /** Columns of a schema at its place, or the reason why records of it are dead letters. */
  #columnsOf(schema: RegisteredSchema, side: Side): ProposedStruct | Refusal {
    try {
      const text = schemaText(schema);
      return sourceFormat(text.type).propose(text, this.#place(side), this.#types());
    } catch (caught) {
      if (!isFloeError(caught, 'invalid')) throw caught;
      const error = `schema ${schema.id}: ${caught.message}`;
      const none = caught.details?.['reason'] === 'no_row';
      return { kind: 'refused', reason: none ? 'no_row' : 'unsupported_schema', error };
    }
  }

  #place(side: Side): Place {
    return placeOf(this.#options.config, side);
  }

  #types(): TypeOptions {
    return { time: this.#options.config['table.topic.types.time'], nanos: false };
  }
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

/** The plain text of a registered schema, as it goes to workers. */
export const schemaText = ({ type, schema }: RegisteredSchema): SchemaText => ({
  type,
  schema,
  references: [],
});
