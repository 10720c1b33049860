// Settings as data: each folder declares its own in a `settings.ts`, the composition root resolves them all
// from file, command line and Kafka's names. The same definitions serve topic configs, `--help` and the docs.
// Not for: components (clock, stores, loggers), which are injected.
import { FloeError } from './error.ts';

export type SettingType = 'boolean' | 'int' | 'long' | 'double' | 'string' | 'list' | 'password';

/** One documented setting. `parse` throws a FloeError `invalid` whose text starts at the value. */
export interface Setting<T> {
  readonly type: SettingType;
  readonly default: T;
  /** What it does and why its default is what it is. */
  readonly doc: string;
  /** Values or range for people, e.g. "1…1000" or "gzip, none". */
  readonly valid?: string;
  /** Other names with the same meaning (Kafka's broker names, AutoMQ's). */
  readonly aliases?: readonly string[];
  parse(text: string): T;
  format(value: T): string;
}

export type Settings = Readonly<Record<string, Setting<unknown>>>;
export type Values<D> = { readonly [K in keyof D]: D[K] extends Setting<infer T> ? T : never };

interface Common<T> {
  readonly default: T;
  readonly doc: string;
  readonly aliases?: readonly string[];
}

interface Range {
  readonly min?: number;
  readonly max?: number;
}

function bad(text: string, wanted: string): FloeError {
  return new FloeError('invalid', `"${text}" is not ${wanted}`);
}

/** Kafka's Integer.MAX_VALUE. */
const INT32_MAX = 2 ** 31 - 1;

function rangeText(min: number, max: number): string | undefined {
  if (Number.isFinite(max)) return Number.isFinite(min) ? `${min}…${max}` : `≤ ${max}`;
  return Number.isFinite(min) ? `≥ ${min}` : undefined;
}

function numeric(
  type: 'int' | 'long' | 'double',
  options: Common<number> & Range,
): Setting<number> {
  const { min = -Infinity, max = Infinity } = options;
  const whole = type !== 'double';
  const valid = rangeText(min, max);
  return {
    type,
    ...options,
    ...(valid === undefined ? {} : { valid }),
    parse(text) {
      const value = Number(text.trim());
      if (text.trim() === '' || !Number.isFinite(value) || (whole && !Number.isInteger(value))) {
        throw bad(text, whole ? 'a whole number' : 'a number');
      }
      if (value < min || value > max) throw bad(text, `within ${valid}`);
      if (type === 'int' && Math.abs(value) > INT32_MAX) throw bad(text, 'a number of 32 bits');
      return value;
    },
    format: String,
  };
}

/** A whole number of at most 32 bits. */
export const int = (options: Common<number> & Range) => numeric('int', options);
/** A whole number; milliseconds and bytes mostly. */
export const long = (options: Common<number> & Range) => numeric('long', options);
export const double = (options: Common<number> & Range) => numeric('double', options);

export function bool(options: Common<boolean>): Setting<boolean> {
  return {
    type: 'boolean',
    ...options,
    valid: 'true, false',
    parse(text) {
      const value = text.trim().toLowerCase();
      if (value !== 'true' && value !== 'false') throw bad(text, 'true or false');
      return value === 'true';
    },
    format: String,
  };
}

export function text(
  options: Common<string> & { readonly pattern?: RegExp; readonly wanted?: string },
): Setting<string> {
  return {
    type: 'string',
    ...options,
    parse(value) {
      if (options.pattern !== undefined && !options.pattern.test(value)) {
        throw bad(value, options.wanted ?? `of the form ${options.pattern.source}`);
      }
      return value;
    },
    format: String,
  };
}

export function oneOf<const T extends string>(
  values: readonly T[],
  options: {
    readonly default: NoInfer<T>;
    readonly doc: string;
    readonly aliases?: readonly string[];
  },
): Setting<T> {
  return {
    type: 'string',
    ...options,
    valid: values.join(', '),
    parse(value) {
      const found = values.find((candidate) => candidate === value.trim());
      if (found === undefined) throw bad(value, `one of ${values.join(', ')}`);
      return found;
    },
    format: String,
  };
}

/** Comma-separated values; with `values`, each must be one of them. */
export function list<const T extends string>(
  options: Common<readonly T[]> & { readonly values?: readonly T[] },
): Setting<readonly T[]> {
  return {
    type: 'list',
    ...options,
    ...(options.values === undefined ? {} : { valid: options.values.join(', ') }),
    parse(value) {
      const items = value
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '');
      for (const item of items) {
        if (options.values !== undefined && !(options.values as readonly string[]).includes(item)) {
          throw bad(item, `one of ${options.values.join(', ')}`);
        }
      }
      return items as T[];
    },
    format: (value) => value.join(','),
  };
}

/** Parses one value; the error names setting, value and remedy. */
export function parseSetting<T>(name: string, setting: Setting<T>, value: string): T {
  try {
    return setting.parse(value);
  } catch (caught) {
    const valid = setting.valid === undefined ? '' : ` (valid: ${setting.valid})`;
    throw new FloeError('invalid', `${name}: ${FloeError.from(caught).message}${valid}`, {
      cause: caught,
    });
  }
}

/** The definition behind a name or an alias, with its proper name. */
export function findSetting(
  definitions: Settings,
  name: string,
): [string, Setting<unknown>] | undefined {
  if (Object.hasOwn(definitions, name)) return [name, definitions[name]!];
  return Object.entries(definitions).find(([, setting]) => setting.aliases?.includes(name));
}

/**
 * All values of `definitions`: given ones parsed, the others by default.
 * @throws FloeError `invalid` for an unknown name or a bad value.
 */
export function resolveSettings<D extends Settings>(
  definitions: D,
  given: Readonly<Record<string, string>>,
): Values<D> {
  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(definitions)) values[name] = setting.default;
  for (const [name, value] of Object.entries(given)) {
    const found = findSetting(definitions, name);
    if (found === undefined) {
      throw new FloeError(
        'invalid',
        `unknown setting "${name}": see docs/settings.md for the names`,
      );
    }
    values[found[0]] = parseSetting(name, found[1], value);
  }
  return values as Values<D>;
}
