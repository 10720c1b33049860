// Topics: names, ids, partitions, configs. A partition has an integer id of its own, never used again.

export interface Topic {
  /** Canonical UUID text. */
  readonly topicId: string;
  readonly name: string;
  /** Partition ids by partition index. */
  readonly partitions: readonly number[];
  /** Only what was set; defaults live with the definitions. */
  readonly config: Readonly<Record<string, string>>;
  readonly createdMs: number;
  /** Raised by every change of the topic. */
  readonly version: number;
}

export interface CreateTopic {
  readonly topicId: string;
  readonly name: string;
  readonly partitionCount: number;
  readonly config: Readonly<Record<string, string>>;
  readonly nowMs: number;
}

/** Scope of dynamic configs that aren't a topic's: cluster-wide ('') or one broker's (its id). */
export type BrokerConfigScope = string;

export interface TopicsMetadata {
  /** @throws FloeError `conflict` when the name is taken. */
  create(request: CreateTopic): Promise<Topic>;
  /** @throws FloeError `not-found`; `invalid` when `partitionCount` isn't above the present one. */
  addPartitions(topicId: string, partitionCount: number): Promise<Topic>;
  /** Ends the topic and all that hangs on it: partitions, producer state, offsets of groups, staged ranges. */
  delete(topicId: string): Promise<void>;
  /** All topics, or those of these ids that there are, by name. */
  list(topicIds?: readonly string[]): Promise<readonly Topic[]>;
  /** Sets (text) or removes (null) config entries. @throws FloeError `not-found`. */
  alterConfig(topicId: string, changes: Readonly<Record<string, string | null>>): Promise<Topic>;
  brokerConfig(scope: BrokerConfigScope): Promise<Readonly<Record<string, string>>>;
  alterBrokerConfig(
    scope: BrokerConfigScope,
    changes: Readonly<Record<string, string | null>>,
  ): Promise<Readonly<Record<string, string>>>;
}
