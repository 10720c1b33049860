// What may be registered and as what: checks and completions of a registration on what was loaded. Pure. Not here: reading,
// writing and trying again (registry.ts), compatibility (levels.ts).
import { FloeError, isFloeError } from '../base/error.ts';
import type { SubjectRow, SubjectVersionRow } from '../metadata/registry.ts';
import type { SchemaInput } from './content.ts';
import { type Contract, mergedContract, parseContract, withVersion } from './contract.ts';
import { errors } from './errors.ts';
import { type Mode, type RegistryConfig, takesIds } from './subject-settings.ts';
import { GLOBAL_CONTEXT, parseSubject } from './subjects.ts';

/** A version number, or the newest. */
export type VersionChoice = number | 'latest';

export interface RegisterInput extends SchemaInput {
  /** In IMPORT mode: the id to use. */
  readonly id?: number | undefined;
  /** In IMPORT mode the version to use; else it must be the one that comes next (−1: whichever that is). */
  readonly version?: number | undefined;
}

/** Longest subject name, in UTF-16 units; Kafka's topic names have at most 249. */
const MAX_SUBJECT_LENGTH = 1_024;

/** @throws FloeError 40402. */
export function choose(
  versions: readonly SubjectVersionRow[],
  choice: VersionChoice,
): SubjectVersionRow {
  const found =
    choice === 'latest' ? versions.at(-1) : versions.find(({ version }) => version === choice);
  if (found === undefined) throw errors.versionNotFound(choice);
  return found;
}

/** The versions that aren't soft-deleted. */
export const live = ({ versions }: SubjectRow) => versions.filter((row) => !row.deleted);

/** Metadata and rules of a version; none of no version. */
export const contractOf = (row: SubjectVersionRow | undefined): Contract =>
  row === undefined ? {} : parseContract(row.contract);

/** For a look-up in one of several places: nothing where it isn't. @throws what it caught otherwise. */
export function ifMissing(caught: unknown): undefined {
  if (!isFloeError(caught, 'not-found') && !isFloeError(caught, 'invalid')) throw caught;
}

/**
 * What a registration leaves out comes from the newest version (the schema itself, metadata and rules) and from the
 * subject's config. @throws FloeError 42201 when the version asked for isn't the next one.
 */
export function populated(
  input: RegisterInput,
  row: SubjectRow,
  config: RegistryConfig,
): RegisterInput {
  const latest = live(row).at(-1);
  const { version } = input;
  const type = input.schemaType ?? 'AVRO';
  if (version !== undefined && version > 0 && version !== row.nextVersion)
    throw errors.invalidSchema(type, 'Version is not one more than previous version');
  const schema =
    input.schema.trim() === '' && latest !== undefined
      ? { schema: latest.schema, schemaType: latest.type, references: latest.references }
      : {};
  const merged = mergedContract(input, contractOf(latest), config);
  return { ...input, ...schema, ...withVersion(merged, row.nextVersion, version !== undefined) };
}

/** Versions below 1 leave the choice to the registry. */
export function positiveVersion(input: RegisterInput): RegisterInput {
  return (input.version ?? 1) < 1 ? { ...input, version: undefined } : input;
}

/** The value of the metadata property that groups versions; all are one group when none is set. */
export function groupOf({ contract }: { contract: string }, property: string | undefined): unknown {
  return property === undefined
    ? undefined
    : parseContract(contract).metadata?.properties?.[property];
}

/** A subject is any text; only what would mean something else to Confluent's clients is refused. @throws FloeError 42208. */
export function assertSubject(name: string): void {
  const { context: own, subject } = parseSubject(name);
  if (subject === '') throw errors.invalidSubject(name, 'it is empty');
  if (name.length > MAX_SUBJECT_LENGTH)
    throw errors.invalidSubject(name, `it is longer than ${MAX_SUBJECT_LENGTH} characters`);
  if (own === GLOBAL_CONTEXT || subject === '__GLOBAL' || subject === '__EMPTY')
    throw errors.invalidSubject(name, 'it is a name of the registry itself');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what is refused
  if (/[\u0000-\u001f\u007f-\u009f]/.test(name))
    throw errors.invalidSubject(name, 'it has control characters');
}

/** Ids come with the schema in import mode, and only there. @throws FloeError 42205, 422. */
export function assertImport(subject: string, mode: Mode, { id, version }: RegisterInput): void {
  if (id === undefined && takesIds(mode))
    throw errors.notPermitted(`Subject ${subject} is not in read-write mode: give the id`);
  if (id !== undefined && !takesIds(mode))
    throw errors.notPermitted(`Subject ${subject} is not in import mode`);
  for (const number of [id, version])
    if (number !== undefined && number > 2 ** 31 - 1)
      throw errors.invalidRequest(`${number} is no valid id or version: 1 to 2^31-1`);
}

/** What the store says about a version that can't be added, in the registry's errors. */
export function translateAdd(caught: unknown, type: string, input: RegisterInput): FloeError {
  const error = FloeError.from(caught);
  if (error.code === 'not-found') return errors.invalidSchema(type, error.message);
  const { taken } = error.details;
  if (taken === undefined) return error;
  return errors.notPermitted(
    `Overwriting ${taken} ${input[taken as 'id' | 'version']} is not permitted`,
  );
}
