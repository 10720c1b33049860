// Which columns of a table the values of its sources go to: schemas by their keys, and paths of what has no schema, each
// bound to committed field ids, or refused with what its dead letters will say. Bound as records bring them, and bound
// anew when the table's columns have changed.
// Not for: changing the table (binding.ts), what a schema means (sources/).
import type { ProposedStruct } from '../formats/arrow/proposed-schema.ts';
import type { TypeConflict } from './evolve.ts';
import type { SourceBinding } from './job.ts';
import type { TopicConfigs } from './settings/index.ts';
import type { Side } from './sources/source.ts';
import {
  type Proposal,
  TopicSources,
  type TopicSourcesDeps,
  type TopicSourcesOptions,
} from './sources/topic-sources.ts';
import { LATEST_KEY, type SourceKey, splitKey } from './sources/wire.ts';
import { chosenColumns } from './wanted-columns.ts';

/** Schemas (and messages of schemas) bound at a time; beyond, all are forgotten and bound again as they come. */
const MAX_SOURCES = 2_000;

/** Where proposed columns are in the table, after it was given those it may have. */
export interface PlacedColumns {
  /** Path → field id. */
  readonly bindings: ReadonlyMap<string, number>;
  /** Those that have no place: the policy is to refuse them. */
  readonly conflicts: readonly TypeConflict[];
}

/** Gives the table columns. `mayRename`: as the newest schema of its subject may. */
export type PlaceColumns = (proposed: ProposedStruct, mayRename: boolean) => Promise<PlacedColumns>;

export class BoundSources {
  readonly #config: TopicConfigs;
  readonly #sources: TopicSources;
  readonly #place: PlaceColumns;
  #values = new Map<SourceKey, SourceBinding>();
  #keys = new Map<SourceKey, SourceBinding>();
  #paths: ReadonlyMap<string, number> = new Map();
  #version = 0;

  constructor(deps: TopicSourcesDeps, options: TopicSourcesOptions, place: PlaceColumns) {
    this.#config = options.config;
    this.#sources = new TopicSources(deps, options);
    this.#place = place;
  }

  get values(): ReadonlyMap<SourceKey, SourceBinding> {
    return this.#values;
  }

  get keys(): ReadonlyMap<SourceKey, SourceBinding> {
    return this.#keys;
  }

  /** Where paths of what isn't a schema's are. */
  get paths(): ReadonlyMap<string, number> {
    return this.#paths;
  }

  /** Rises with every change, so that converters made before are made anew. */
  get version(): number {
    return this.#version;
  }

  /** Columns of the value's newest schema; undefined: none is known, or none can be had. */
  newest(): Promise<ProposedStruct | undefined> {
    return this.#sources.newest();
  }

  changed(): void {
    this.#version += 1;
  }

  /** Takes note of where columns are. */
  notePaths(bindings: ReadonlyMap<string, number>): void {
    this.#paths = new Map([...this.#paths, ...bindings]);
  }

  /** The table's columns are others now: all is bound again. */
  forget(): void {
    this.#values = new Map();
    this.#keys = new Map();
    this.#paths = new Map();
    this.changed();
  }

  /** Binds a schema unless it is; of a Protobuf file, the one message. */
  async bind(key: SourceKey, side: Side): Promise<void> {
    const bound = side === 'value' ? this.#values : this.#keys;
    if (bound.size >= MAX_SOURCES) bound.clear();
    if (isBound(bound, key)) return;
    const proposal = await this.#sources.propose(key, side);
    const { schema } = splitKey(key);
    if (proposal.hasMessages) bound.set(schema, { kind: 'messages' });
    const place = proposal.hasMessages ? key : schema;
    bound.set(
      place,
      proposal.kind === 'refused' ? proposal : await this.#bindProposal(proposal, side),
    );
  }

  async #bindProposal(proposal: Proposal, side: Side): Promise<SourceBinding> {
    const { text, columns, mayRename, name } = proposal;
    const chosen = side === 'value' ? chosenColumns(this.#config, columns) : columns;
    const { bindings, conflicts } = await this.#place(chosen, mayRename);
    const [first] = conflicts;
    if (first === undefined) return { kind: 'bound', text, bindings };
    return {
      kind: 'refused',
      reason: 'incompatible_type',
      error: `column "${first.column}" is ${first.columnType}, ${name} writes ${first.sourceType}`,
    };
  }

  /** What was unknown, or only the newest by now, is asked for again after a while. */
  expire(): void {
    if (this.#sources.latestExpired()) {
      this.#values.delete(LATEST_KEY);
      this.#keys.delete(LATEST_KEY);
      this.changed();
    }
    if (!this.#sources.unknownExpired()) return;
    for (const sources of [this.#values, this.#keys]) {
      for (const [id, source] of sources) {
        const unknown = source.kind === 'refused' && source.reason === 'unknown_schema_id';
        if (unknown) sources.delete(id);
      }
    }
    this.changed();
  }
}

function isBound(sources: ReadonlyMap<SourceKey, SourceBinding>, key: SourceKey): boolean {
  const source = sources.get(splitKey(key).schema);
  return source !== undefined && (source.kind !== 'messages' || sources.has(key));
}
