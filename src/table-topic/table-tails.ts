// Tails of tables on nodes that share them with others: whichever node coordinates a table, any of them decodes its tail
// from its own copy of the log (rule K6). Bound from the catalog without changing anything, as lanes elsewhere are; of an
// upsert table this node's key index follows the table by itself.
// Not for: decoding (tail.ts), tails on a node that is alone (table-topics.ts).

import { isFloeError } from '../base/error.ts';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import { quarantinedPartitions } from '../metadata/quarantine.ts';
import type { TableLanesMetadata } from '../metadata/table-lanes.ts';
import type { Topic } from '../metadata/topics.ts';
import type { BindingDeps, TableBinding } from './binding.ts';
import type { JobNeeds, JobTable } from './job.ts';
import { readOnlyBinding } from './read-only-binding.ts';
import { needsCoordinator } from './read-only-catalog.ts';
import { resolveTopicConfigs, type TableSettings } from './settings/index.ts';
import { readTail, type TailAnswer, type TailDeps, type TailRequest } from './tail.ts';
import { committedFloor } from './upsert/floor.ts';
import { readHistory } from './upsert/history-reader.ts';
import { upsertOf } from './upsert/table-upserts.ts';
import { readBack } from './watermark.ts';

export interface TableTailsDeps extends BindingDeps, TailDeps {
  readonly settings: TableSettings;
}

interface Bound {
  /** As the binding was made for it. */
  readonly topic: Topic;
  readonly binding: TableBinding;
}

/** Tables whose bindings are kept; beyond, all are made again as they are asked for. */
const MAX_KEPT = 200;

export class TableTails {
  readonly #deps: TableTailsDeps;
  readonly #words: TableLanesMetadata;
  readonly #kept = new Map<string, Bound>();

  constructor(deps: TableTailsDeps, words: TableLanesMetadata) {
    this.#deps = deps;
    this.#words = words;
  }

  /**
   * The topic's part of the tail beside the snapshot. `coordinated`: by this node, whose commits move the key index.
   * Undefined when there is no such table to be read. @throws FloeError as reads do.
   */
  async read(
    topic: Topic,
    metadata: TableMetadata,
    coordinated: boolean,
  ): Promise<TailAnswer | undefined> {
    const binding = await this.#bindingOf(topic, metadata['table-uuid']);
    if (binding === undefined) return undefined;
    binding.observe(metadata);
    const config = resolveTopicConfigs(topic.config);
    const table = tailTable(binding, config);
    if (table === undefined) return undefined;
    const startOf = await this.#starts(topic.topicId);
    const request = { topic: topic.name, topicId: topic.topicId, partitions: topic.partitions };
    return readTail(this.#deps, {
      ...request,
      quarantined: quarantinedPartitions(topic),
      startOf,
      config,
      metadata,
      table,
      bind: async (needs) =>
        (await bindSome(binding, needs)) ? tailTable(binding, config) : undefined,
      ...(coordinated
        ? {}
        : { history: () => this.#history({ ...request, config, table }, metadata) }),
    });
  }

  /** Undefined when the table can't be bound as it is: its coordinator has still to bring it in order. */
  async #bindingOf(topic: Topic, tableUuid: string): Promise<TableBinding | undefined> {
    const kept = this.#kept.get(topic.topicId);
    const same = kept?.binding.table?.metadata['table-uuid'] === tableUuid;
    if (kept?.topic === topic && same) return kept.binding;
    const binding = readOnlyBinding(this.#deps, topic, tableUuid);
    try {
      if (!(await binding.open())) return undefined;
    } catch (caught) {
      if (needsCoordinator(caught) || isFloeError(caught, 'invalid', 'conflict')) return undefined;
      throw caught;
    }
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(topic.topicId, { topic, binding });
    return binding;
  }

  /** Where partitions begin that no commit has touched. */
  async #starts(topicId: string): Promise<TailRequest['startOf']> {
    const [found] = await this.#words.positions([topicId]);
    const starts = new Map(found?.positions.map((one) => [one.partition, one.committedEnd]));
    return (partition) => starts.get(partition);
  }

  async #history(
    request: Pick<TailRequest, 'topic' | 'topicId' | 'partitions' | 'config' | 'table'>,
    metadata: TableMetadata,
  ): Promise<readonly Uint8Array[]> {
    const back = readBack(metadata);
    const offsets = back.kind === 'at' ? back.watermark.topics.get(request.topicId) : undefined;
    if (offsets === undefined) return [];
    const { log } = this.#deps;
    const { table, partitions } = request;
    return readHistory(this.#deps, {
      ...request,
      offsets,
      floor: await committedFloor(log, partitions, offsets),
      table: { ...table, key: `${table.key}/history` },
    });
  }
}

/** The table as a query's job sees it; undefined where there is none yet. */
export function tailTable(
  binding: TableBinding,
  config: ReturnType<typeof resolveTopicConfigs>,
): JobTable | undefined {
  const table = binding.jobTable();
  const upsert = upsertOf(config, binding);
  if (table === undefined || upsert === undefined) return table;
  return { ...table, key: `${table.key}/tail`, upsert };
}

/** One by one: what would need a change of the table keeps nothing else from being bound. */
async function bindSome(binding: TableBinding, needs: JobNeeds): Promise<boolean> {
  const nothing = {
    kind: 'needs',
    valueSchemas: [],
    keySchemas: [],
    deadLetterTable: false,
  } as const;
  const { columns, schemas } = needs;
  const parts: JobNeeds[] = [
    ...needs.valueSchemas.map((key) => ({ ...nothing, valueSchemas: [key] })),
    ...needs.keySchemas.map((key) => ({ ...nothing, keySchemas: [key] })),
    ...(columns === undefined ? [] : [{ ...nothing, columns }]),
    ...(schemas ?? []).map((schema) => ({ ...nothing, schemas: [schema] })),
  ];
  let bound = false;
  for (const part of parts) {
    try {
      if (await binding.satisfy(part)) bound = true;
    } catch (caught) {
      if (!needsCoordinator(caught) && !isFloeError(caught, 'invalid')) throw caught;
    }
  }
  return bound;
}
