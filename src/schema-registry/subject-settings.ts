// Compatibility and mode per subject, with the global value behind them. Stored as JSON text in the metadata store.
import type { RegistryMetadata } from '../metadata/registry.ts';
import { errors } from './errors.ts';
import { type CompatibilityLevel, DEFAULT_LEVEL, LEVELS } from './levels.ts';

export interface RegistryConfig {
  readonly compatibility?: CompatibilityLevel;
  /** Normalise schemas before they are registered or looked up. */
  readonly normalize?: boolean;
  /** Only versions with the same value of this metadata property are compared. */
  readonly compatibilityGroup?: string;
}

const MODES = ['READWRITE', 'READONLY', 'READONLY_OVERRIDE', 'IMPORT'] as const;
export type Mode = (typeof MODES)[number];

/** What a client may set beyond {@link RegistryConfig}; understood, and not served. */
const UNSERVED = [
  'alias',
  'validateFields',
  'defaultMetadata',
  'overrideMetadata',
  'defaultRuleSet',
  'overrideRuleSet',
];

const GLOBAL = '';

/** Checks what came over HTTP. @throws FloeError 42203, 422. */
export function parseConfig(body: Readonly<Record<string, unknown>>): RegistryConfig {
  const unserved = UNSERVED.find(
    (key) => body[key] !== undefined && body[key] !== null && body[key] !== false,
  );
  if (unserved !== undefined)
    throw errors.invalidRequest(`"${unserved}" is not served by this registry: leave it out`);
  const { compatibility, compatibilityLevel, normalize, compatibilityGroup } = body;
  const asked = compatibility ?? compatibilityLevel;
  const level = LEVELS.find((candidate) => candidate === String(asked).toUpperCase());
  if (asked !== undefined && asked !== null && level === undefined)
    throw errors.invalidCompatibility();
  const config = {
    ...(level === undefined ? {} : { compatibility: level }),
    ...(typeof normalize === 'boolean' ? { normalize } : {}),
    ...(typeof compatibilityGroup === 'string' ? { compatibilityGroup } : {}),
  };
  if (Object.keys(config).length === 0) throw errors.invalidCompatibility();
  return config;
}

/** @throws FloeError 42204. */
export function parseMode(mode: unknown): Mode {
  const found = MODES.find((candidate) => candidate === String(mode).toUpperCase());
  if (found === undefined) throw errors.invalidMode();
  return found;
}

export class SubjectSettings {
  readonly #metadata: RegistryMetadata;

  constructor(metadata: RegistryMetadata) {
    this.#metadata = metadata;
  }

  /** The subject's own config; undefined when it has none. Without subject the global one, default included. */
  async config(subject?: string): Promise<RegistryConfig | undefined> {
    const own = await this.#metadata.setting('config', subject ?? GLOBAL);
    const parsed = own === undefined ? undefined : (JSON.parse(own) as RegistryConfig);
    return subject === undefined ? { compatibility: DEFAULT_LEVEL, ...parsed } : parsed;
  }

  /** What holds for the subject: its own values over the global ones. */
  async effectiveConfig(
    subject: string,
  ): Promise<RegistryConfig & { compatibility: CompatibilityLevel }> {
    const global = await this.config();
    return { compatibility: DEFAULT_LEVEL, ...global, ...(await this.config(subject)) };
  }

  /** Merges into what is set. @throws FloeError 42205 in read-only mode. */
  async setConfig(subject: string | undefined, change: RegistryConfig): Promise<void> {
    await this.assertWritable(subject);
    const before = await this.#metadata.setting('config', subject ?? GLOBAL);
    const merged = { ...(before === undefined ? {} : (JSON.parse(before) as object)), ...change };
    await this.#metadata.setSetting('config', subject ?? GLOBAL, JSON.stringify(merged));
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
  async mode(subject?: string): Promise<Mode | undefined> {
    const own = (await this.#metadata.setting('mode', subject ?? GLOBAL)) as Mode | undefined;
    return own ?? (subject === undefined ? 'READWRITE' : undefined);
  }

  /** READONLY_OVERRIDE, set globally, wins over every subject's own mode. */
  async effectiveMode(subject: string): Promise<Mode> {
    const global = (await this.mode())!;
    return global === 'READONLY_OVERRIDE' ? global : ((await this.mode(subject)) ?? global);
  }

  /** IMPORT needs an empty subject (or registry), else foreign ids would meet own ones; `force` overrules. */
  async setMode(subject: string | undefined, mode: Mode, force: boolean): Promise<void> {
    if (mode === 'IMPORT' && !force && (await this.#holdsSchemas(subject)))
      throw errors.notPermitted('Cannot import since found existing subjects');
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
    const mode = subject === undefined ? (await this.mode())! : await this.effectiveMode(subject);
    if (mode.startsWith('READONLY')) {
      const what = subject === undefined ? 'The registry' : `Subject ${subject}`;
      throw errors.notPermitted(`${what} is in read-only mode`);
    }
    return mode;
  }

  async #holdsSchemas(subject?: string): Promise<boolean> {
    if (subject === undefined) return (await this.#metadata.counts()).versions > 0;
    return (await this.#metadata.subject(subject)).versions.some((version) => !version.deleted);
  }
}
