// All topics in memory, for look-ups that must not wait: admission, fetch, metadata.
// Changes go through it, so that in one process it is never stale; the order is metadata first, memory second.
// Where other nodes change topics, too, `refresh` reads again what has changed; of two versions of a topic the newer one
// stays.
import { FloeError } from '../base/error.ts';
import type { CreateTopic, Topic, TopicsMetadata } from './topics.ts';
import type { VersionsMetadata } from './versions.ts';

export interface PartitionRef {
  readonly topic: Topic;
  /** Partition index within the topic. */
  readonly index: number;
}

export type TopicChange =
  | { readonly kind: 'created' | 'changed'; readonly topic: Topic; readonly previous?: Topic }
  | { readonly kind: 'deleted'; readonly topic: Topic };

/** Where topics are kept. */
interface TopicStore {
  readonly topics: TopicsMetadata;
  readonly versions: Pick<VersionsMetadata, 'current' | 'changes'>;
}

export class TopicDirectory {
  readonly #metadata: TopicsMetadata;
  readonly #versions: TopicStore['versions'];
  /** Of `topics`: what it has is here. */
  #version = 0;
  readonly #byName = new Map<string, Topic>();
  readonly #byId = new Map<string, Topic>();
  readonly #byPartition = new Map<number, PartitionRef>();
  readonly #listeners = new Set<(change: TopicChange) => void>();
  /** Deleted while topics were being read again: what was read may still have them. */
  readonly #gone = new Set<string>();
  #refreshing: Promise<void> | undefined;
  #nextRefresh: Promise<void> | undefined;
  #elsewhere: (() => Promise<void>) | undefined;

  private constructor({ topics, versions }: TopicStore) {
    this.#metadata = topics;
    this.#versions = versions;
  }

  static async load(store: TopicStore): Promise<TopicDirectory> {
    const directory = new TopicDirectory(store);
    directory.#version = (await store.versions.current()).topics;
    for (const topic of await store.topics.list()) directory.#keep(topic);
    return directory;
  }

  byName(name: string): Topic | undefined {
    return this.#byName.get(name);
  }

  byId(topicId: string): Topic | undefined {
    return this.#byId.get(topicId);
  }

  byPartition(partitionId: number): PartitionRef | undefined {
    return this.#byPartition.get(partitionId);
  }

  all(): Topic[] {
    return [...this.#byName.values()];
  }

  /** Makes sure, where other nodes change topics too, that what they did before is here; undefined where none does. */
  catchUp(): Promise<void> | undefined {
    return this.#elsewhere?.();
  }

  /** True where other nodes change topics too. */
  get isShared(): boolean {
    return this.#elsewhere !== undefined;
  }

  /** Where other nodes change topics, too: `catchUp` makes sure, bounded in rate, that what they did is here. It never rejects. */
  followOthers(catchUp: () => Promise<void>): void {
    this.#elsewhere = catchUp;
  }

  /** Called after each change; returns how to stop that. */
  onChange(listener: (change: TopicChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async create(request: CreateTopic): Promise<Topic> {
    const topic = await this.#metadata.create(request);
    // A refresh may have been quicker.
    if (this.#byId.has(topic.topicId)) return topic;
    this.#keep(topic);
    this.#tell({ kind: 'created', topic });
    return topic;
  }

  async addPartitions(topicId: string, partitionCount: number): Promise<Topic> {
    return this.#changed(await this.#metadata.addPartitions(topicId, partitionCount));
  }

  async alterConfig(
    topicId: string,
    changes: Readonly<Record<string, string | null>>,
  ): Promise<Topic> {
    return this.#changed(await this.#metadata.alterConfig(topicId, changes));
  }

  async delete(topicId: string): Promise<void> {
    const topic = this.#byId.get(topicId);
    if (topic === undefined)
      throw new FloeError('not-found', `there is no topic with id ${topicId}`);
    await this.#metadata.delete(topicId);
    this.#drop(topicId);
  }

  /**
   * Reads the topics that have changed and tells listeners of it: deletions first. What was there before the call is here
   * when it resolves. One reads at a time: calls during it share the next.
   */
  refresh(): Promise<void> {
    if (this.#refreshing === undefined) return this.#startRefresh();
    this.#nextRefresh ??= this.#refreshing
      .catch(() => {})
      .then(() => {
        this.#nextRefresh = undefined;
        return this.#startRefresh();
      });
    return this.#nextRefresh;
  }

  #startRefresh(): Promise<void> {
    this.#refreshing = this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #refresh(): Promise<void> {
    this.#gone.clear();
    const { version, ids } = await this.#versions.changes('topics', this.#version);
    if (ids === undefined || ids.length > 0) await this.#readAgain(ids);
    this.#version = version;
  }

  /** The topics of these ids, or all. */
  async #readAgain(ids: readonly string[] | undefined): Promise<void> {
    const before = ids ?? [...this.#byId.keys()];
    const found = new Map((await this.#metadata.list(ids)).map((topic) => [topic.topicId, topic]));
    for (const topicId of before) if (!found.has(topicId)) this.#drop(topicId);
    for (const topic of found.values()) {
      if (this.#gone.has(topic.topicId)) continue;
      const known = this.#byId.get(topic.topicId);
      if (known !== undefined) {
        if (known.version < topic.version) this.#changed(topic);
        continue;
      }
      this.#keep(topic);
      this.#tell({ kind: 'created', topic });
    }
  }

  /** Forgets a topic that was deleted, once. */
  #drop(topicId: string): void {
    if (this.#refreshing !== undefined) this.#gone.add(topicId);
    const topic = this.#byId.get(topicId);
    if (topic === undefined) return;
    this.#byId.delete(topicId);
    if (this.#byName.get(topic.name)?.topicId === topicId) this.#byName.delete(topic.name);
    for (const partitionId of topic.partitions) this.#byPartition.delete(partitionId);
    this.#tell({ kind: 'deleted', topic });
  }

  #changed(topic: Topic): Topic {
    const previous = this.#byId.get(topic.topicId);
    // Read or changed later than what this answer was made from.
    if (previous !== undefined && previous.version > topic.version) return topic;
    this.#keep(topic);
    this.#tell({ kind: 'changed', topic, ...(previous === undefined ? {} : { previous }) });
    return topic;
  }

  #keep(topic: Topic): void {
    this.#byName.set(topic.name, topic);
    this.#byId.set(topic.topicId, topic);
    for (const [index, partitionId] of topic.partitions.entries()) {
      this.#byPartition.set(partitionId, { topic, index });
    }
  }

  #tell(change: TopicChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
