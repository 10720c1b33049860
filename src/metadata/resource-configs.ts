// Configs of things that are neither topic nor broker: consumer groups, client metrics subscriptions. A resource exists
// while it has at least one config. Not for: what names and values mean (broker/resource-configs.ts).

/** What kinds of resources keep their configs here. */
export type ResourceKind = 'group' | 'client-metrics';

export interface ResourceConfig {
  readonly kind: ResourceKind;
  readonly name: string;
  /** At least one. */
  readonly config: Readonly<Record<string, string>>;
}

export interface ResourceConfigsMetadata {
  list(): Promise<readonly ResourceConfig[]>;
  /** Sets (text) or removes (null) entries; what is set then. */
  alter(
    kind: ResourceKind,
    name: string,
    changes: Readonly<Record<string, string | null>>,
  ): Promise<Readonly<Record<string, string>>>;
}
