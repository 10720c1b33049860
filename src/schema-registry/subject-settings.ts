// Config and mode: of a subject, of its context, of the whole registry, the nearest winning. Stored as text in the
// metadata store.
import type { RegistryMetadata, RegistrySettingKind } from '../metadata/registry.ts';
import { type ContractDefaults, parseMetadata, parseRuleSet } from './contract.ts';
import { errors } from './errors.ts';
import { type CompatibilityLevel, DEFAULT_LEVEL, LEVELS } from './levels.ts';
import {
  contextOf,
  DEFAULT_CONTEXT,
  GLOBAL_CONTEXT,
  parseSubject,
  settingScopes,
  subjectWithin,
} from './subjects.ts';

export interface RegistryConfig extends ContractDefaults {
  readonly compatibility?: CompatibilityLevel;
  /** Normalise schemas before they are registered or looked up. */
  readonly normalize?: boolean;
  /** Only versions with the same value of this metadata property are compared. */
  readonly compatibilityGroup?: string;
  /** The subject that requests for this one are about. */
  readonly alias?: string;
}

export type EffectiveConfig = RegistryConfig & { readonly compatibility: CompatibilityLevel };

/** A change of config: null takes the value away. */
export type ConfigChange = { readonly [K in keyof RegistryConfig]?: RegistryConfig[K] | null };

const MODES = ['READWRITE', 'READONLY', 'READONLY_OVERRIDE', 'IMPORT', 'FORWARD'] as const;
export type Mode = (typeof MODES)[number];

/** What a client may set beyond {@link RegistryConfig}; understood, and not served. */
const UNSERVED = ['validateFields', 'validateNewSchemas', 'validateRules', 'aliasForDeks'];

/** Checks what came over HTTP. @throws FloeError 42203, 42210, 422. */
export function parseConfig(body: Readonly<Record<string, unknown>>): ConfigChange {
  const asks = (key: string) =>
    body[key] !== undefined && body[key] !== null && body[key] !== false;
  const unserved = UNSERVED.find(asks);
  if (unserved !== undefined)
    throw errors.invalidRequest(`"${unserved}" is not served by this registry: leave it out`);
  if (asks('compatibilityPolicy') && String(body['compatibilityPolicy']).toUpperCase() !== 'STRICT')
    throw errors.invalidRequest('"compatibilityPolicy" other than STRICT is not served');
  const change: Record<string, unknown> = {};
  const set = (key: keyof RegistryConfig, given: unknown, parse: (value: unknown) => unknown) => {
    if (given !== undefined) change[key] = given === null ? null : parse(given);
  };
  set('compatibility', body['compatibility'] ?? body['compatibilityLevel'], parseLevel);
  set('normalize', body['normalize'], (value) => value === true);
  for (const key of ['compatibilityGroup', 'alias'] as const) set(key, body[key], text(key));
  for (const key of ['defaultMetadata', 'overrideMetadata'] as const)
    set(key, body[key], parseMetadata);
  for (const key of ['defaultRuleSet', 'overrideRuleSet'] as const)
    set(key, body[key], parseRuleSet);
  return change;
}

const text = (key: string) => (value: unknown) => {
  if (typeof value !== 'string') throw errors.invalidRequest(`"${key}" is not a text`);
  // An empty text takes the value away.
  return value === '' ? null : value;
};

function parseLevel(asked: unknown): CompatibilityLevel {
  const level = LEVELS.find((candidate) => candidate === String(asked).toUpperCase());
  if (level === undefined) throw errors.invalidCompatibility();
  return level;
}

/** @throws FloeError 42204. */
export function parseMode(mode: unknown): Mode {
  const found = MODES.find((candidate) => candidate === String(mode).toUpperCase());
  if (found === undefined) throw errors.invalidMode();
  return found;
}

/** True in modes in which schemas come with their ids from elsewhere. */
export function takesIds(mode: Mode): boolean {
  return mode === 'IMPORT' || mode === 'FORWARD';
}

const GLOBAL = '';

export class SubjectSettings {
  readonly #metadata: RegistryMetadata;
  readonly #onRemoved: () => void;

  /** `onRemoved` is called when a change of mode has removed versions for good. */
  constructor(metadata: RegistryMetadata, onRemoved: () => void) {
    this.#metadata = metadata;
    this.#onRemoved = onRemoved;
  }

  /** The subject's own config; undefined when it has none. Without subject the global one, default included. */
  async config(subject = GLOBAL): Promise<RegistryConfig | undefined> {
    const own = await this.#metadata.setting('config', subject);
    const parsed = own === undefined ? undefined : (JSON.parse(own) as RegistryConfig);
    return subject === GLOBAL ? { compatibility: DEFAULT_LEVEL, ...parsed } : parsed;
  }

  /** What holds for the subject: its own values over its context's over the global ones. */
  async effectiveConfig(subject: string): Promise<EffectiveConfig> {
    const inner = await this.#scoped('config', subject);
    const configs = inner.map((value) =>
      value === undefined ? {} : (JSON.parse(value) as object),
    );
    const merged: RegistryConfig = Object.assign({}, ...configs.reverse());
    const own = configs.at(-1) as RegistryConfig;
    // An alias speaks for its subject only.
    const { alias: _alias, ...others } = merged;
    return {
      compatibility: DEFAULT_LEVEL,
      ...others,
      ...(own.alias === undefined ? {} : { alias: own.alias }),
    };
  }

  /** The subject that requests for `subject` are about: itself, or the one that its alias names. */
  async target(subject: string): Promise<string> {
    const own = await this.#metadata.setting('config', subject);
    if (own === undefined || !own.includes('"alias"')) return subject;
    const { alias } = JSON.parse(own) as RegistryConfig;
    return alias === undefined ? subject : subjectWithin(contextOf(subject), alias);
  }

  /** Merges into what is set; returns the result. @throws FloeError 42205 in read-only mode. */
  async setConfig(subject: string | undefined, change: ConfigChange): Promise<RegistryConfig> {
    await this.assertWritable(subject);
    const before = await this.#metadata.setting('config', subject ?? GLOBAL);
    const old = before === undefined ? {} : (JSON.parse(before) as RegistryConfig);
    const merged = Object.fromEntries(
      Object.entries({ ...old, ...change }).filter(([, value]) => value !== null),
    );
    await this.#metadata.setSetting('config', subject ?? GLOBAL, JSON.stringify(merged));
    return merged;
  }

  /** Back to the default; returns what was set. @throws FloeError 40401 when the subject had none. */
  async deleteConfig(subject?: string): Promise<RegistryConfig> {
    await this.assertWritable(subject);
    const before = await this.#metadata.setSetting('config', subject ?? GLOBAL, null);
    if (before !== undefined) return JSON.parse(before) as RegistryConfig;
    if (subject !== undefined) throw errors.subjectNotFound(subject);
    return { compatibility: DEFAULT_LEVEL };
  }

  /** The subject's own mode, undefined when it has none; without subject the global one. */
  async mode(subject = GLOBAL): Promise<Mode | undefined> {
    const own = (await this.#metadata.setting('mode', subject)) as Mode | undefined;
    return own ?? (subject === GLOBAL ? 'READWRITE' : undefined);
  }

  /** READONLY_OVERRIDE, set on the context or globally, wins over every subject's own mode. */
  async effectiveMode(subject: string): Promise<Mode> {
    const [own, ...outer] = (await this.#scoped('mode', subject)) as (Mode | undefined)[];
    if (outer.includes('READONLY_OVERRIDE')) return 'READONLY_OVERRIDE';
    return own ?? outer.find((mode) => mode !== undefined) ?? 'READWRITE';
  }

  /**
   * IMPORT needs an empty subject (context, registry), else foreign ids would meet own ones; `force` overrules. What was
   * soft-deleted there goes for good.
   */
  async setMode(subject: string | undefined, mode: Mode, force: boolean): Promise<void> {
    if (mode === 'IMPORT' && !force && (await this.effectiveMode(subject ?? GLOBAL)) !== 'IMPORT')
      await this.#clear(subject ?? GLOBAL);
    await this.#metadata.setSetting('mode', subject ?? GLOBAL, mode);
  }

  /** Returns the mode that was set. @throws FloeError 40401 when the subject had none. */
  async deleteMode(subject?: string): Promise<Mode> {
    const before = await this.#metadata.setSetting('mode', subject ?? GLOBAL, null);
    if (before !== undefined) return before as Mode;
    if (subject !== undefined) throw errors.subjectNotFound(subject);
    return 'READWRITE';
  }

  /** What a deleted subject leaves behind: nothing. */
  async forget(subject: string): Promise<void> {
    await this.#metadata.setSetting('config', subject, null);
    await this.#metadata.setSetting('mode', subject, null);
  }

  async assertWritable(subject?: string): Promise<Mode> {
    const mode = await this.effectiveMode(subject ?? GLOBAL);
    if (mode.startsWith('READONLY')) {
      const what = subject === undefined ? 'The registry' : `Subject ${subject}`;
      throw errors.notPermitted(`${what} is in read-only mode`);
    }
    return mode;
  }

  #scoped(kind: RegistrySettingKind, subject: string): Promise<readonly (string | undefined)[]> {
    return this.#metadata.settings(kind, settingScopes(subject));
  }

  async #clear(subject: string): Promise<void> {
    const names = await this.#subjectsUnder(subject);
    const rows = await Promise.all(names.map((name) => this.#metadata.subject(name)));
    if (rows.some(({ versions }) => versions.some((row) => !row.deleted)))
      throw errors.notPermitted('Cannot import since found existing subjects');
    for (const [at, { stamp, versions }] of rows.entries()) {
      const numbers = versions.map(({ version }) => version);
      const request = { subject: names[at]!, stamp, versions: numbers, permanent: true };
      await this.#metadata.deleteVersions(request);
    }
    this.#onRemoved();
  }

  /** The subject itself, or those of a context, or all. */
  async #subjectsUnder(name: string): Promise<readonly string[]> {
    const { context, subject } = parseSubject(name);
    if (subject !== '') return [name];
    const isAll = context === DEFAULT_CONTEXT || context === GLOBAL_CONTEXT;
    const filter = { prefix: '', deleted: true, ...(isAll ? {} : { context }) };
    return (await this.#metadata.subjects(filter)).map((row) => row.subject);
  }
}
