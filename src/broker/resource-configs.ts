// Configs of groups and client metrics in memory: loaded once, changed by (Incremental)AlterConfigs, read by who acts on
// them. A resource exists while it has a config; their number is bounded. Not for: their meaning.
import { isDeepStrictEqual } from 'node:util';
import { FloeError } from '../base/error.ts';
import { Mutex } from '../base/queue.ts';
import { findSetting, parseSetting } from '../base/settings.ts';
import type { ResourceConfigsMetadata, ResourceKind } from '../metadata/resource-configs.ts';
import { RESOURCE_DEFINITIONS } from './resource-definitions.ts';

/** Most resources of one kind that have configs. */
const MAX_RESOURCES = 10_000;

const RESOURCE_KINDS: readonly ResourceKind[] = ['group', 'client-metrics'];

type Config = Readonly<Record<string, string>>;
type Changes = Readonly<Record<string, string | null>>;

export class ResourceConfigs {
  readonly #metadata: ResourceConfigsMetadata;
  readonly #configs: Readonly<Record<ResourceKind, Map<string, Config>>> = {
    group: new Map(),
    'client-metrics': new Map(),
  };
  readonly #listeners = new Set<(kind: ResourceKind, name: string) => void>();
  /** What is read never replaces what was changed after. */
  readonly #turns = new Mutex();

  private constructor(metadata: ResourceConfigsMetadata) {
    this.#metadata = metadata;
  }

  static async load(metadata: ResourceConfigsMetadata): Promise<ResourceConfigs> {
    const configs = new ResourceConfigs(metadata);
    for (const { kind, name, config } of await metadata.list()) {
      configs.#configs[kind].set(name, config);
    }
    return configs;
  }

  /** What is set; undefined where nothing is. */
  of(kind: ResourceKind, name: string): Config | undefined {
    return this.#configs[kind].get(name);
  }

  /** All resources that have configs. */
  all(kind: ResourceKind): ReadonlyMap<string, Config> {
    return this.#configs[kind];
  }

  /** Called after each change. */
  onChange(listener: (kind: ResourceKind, name: string) => void): void {
    this.#listeners.add(listener);
  }

  /**
   * Checks changes, null meaning removal; under proper names. `setting` reads the broker's settings as text.
   * @throws FloeError `invalid`, see ResourceDefinition.validate.
   */
  check(
    { kind, name }: { readonly kind: ResourceKind; readonly name: string },
    changes: Changes,
    setting: (name: string) => string | undefined,
  ): Changes {
    const { settings, validate } = RESOURCE_DEFINITIONS[kind];
    const config: Record<string, string> = { ...this.of(kind, name) };
    for (const [configName, value] of Object.entries(changes)) {
      const found = findSetting(settings, configName);
      if (found === undefined) {
        const known = Object.keys(settings).join(', ');
        throw new FloeError(
          'invalid',
          `unknown ${kind} config "${configName}": ${known} are known`,
        );
      }
      if (value === null) delete config[configName];
      else {
        parseSetting(configName, found[1], value);
        config[configName] = value;
      }
    }
    validate(config, setting);
    if (this.#configs[kind].size >= MAX_RESOURCES && this.of(kind, name) === undefined) {
      throw new FloeError('invalid', `${MAX_RESOURCES} of kind ${kind} have configs: remove some`);
    }
    return changes;
  }

  /** Stores checked changes, then uses them. */
  async alter(kind: ResourceKind, name: string, changes: Changes): Promise<void> {
    await this.#turns.run(async () => {
      this.#use(kind, name, await this.#metadata.alter(kind, name, changes));
    });
  }

  /** Takes over what other nodes have changed. */
  async refresh(): Promise<void> {
    await this.#turns.run(async () => {
      const gone = new Map(
        RESOURCE_KINDS.map((kind) => [kind, new Set(this.#configs[kind].keys())]),
      );
      for (const { kind, name, config } of await this.#metadata.list()) {
        gone.get(kind)!.delete(name);
        if (!isDeepStrictEqual(config, this.of(kind, name))) this.#use(kind, name, config);
      }
      for (const [kind, names] of gone) for (const name of names) this.#use(kind, name, {});
    });
  }

  #use(kind: ResourceKind, name: string, config: Config): void {
    if (Object.keys(config).length === 0) this.#configs[kind].delete(name);
    else this.#configs[kind].set(name, config);
    for (const listener of this.#listeners) listener(kind, name);
  }
}
