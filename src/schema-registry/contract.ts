// Metadata and rule set of a schema: kept for clients, who execute the rules. The registry only merges them with what the
// subject's config prescribes and with the version before. Stored as canonical JSON text, since they are part of what
// makes a schema the same.
import type { z } from 'zod';
import { lazy } from '../base/lazy.ts';
import { errors } from './errors.ts';
import { zod } from './zod.ts';

const shapes = lazy(() => {
  const { z } = zod();
  const rules = z.array(z.looseObject({ name: z.string().min(1) })).nullish();
  return {
    metadata: z.object({
      tags: z.record(z.string(), z.array(z.string())).nullish(),
      properties: z.record(z.string(), z.string()).nullish(),
      sensitive: z.array(z.string()).nullish(),
    }),
    ruleSet: z.object({
      migrationRules: rules,
      domainRules: rules,
      encodingRules: rules,
      enableAt: z.string().nullish(),
    }),
  };
});

export type Metadata = z.infer<ReturnType<typeof shapes>['metadata']>;
export type RuleSet = z.infer<ReturnType<typeof shapes>['ruleSet']>;

export interface Contract {
  readonly metadata?: Metadata | undefined;
  readonly ruleSet?: RuleSet | undefined;
}

/** The property that carries the version in a schema's own metadata, for clients that migrate by it. */
const VERSION_PROPERTY = 'confluent:version';

/** Checks what came over HTTP; null counts as not given. @throws FloeError 422. */
export function parseMetadata(value: unknown): Metadata | undefined {
  if (value === undefined || value === null) return undefined;
  const parsed = shapes().metadata.safeParse(value);
  if (parsed.success) return parsed.data;
  throw errors.invalidRequest(`metadata: ${parsed.error.issues[0]?.message ?? 'not valid'}`);
}

/** Checks what came over HTTP; null counts as not given. @throws FloeError 42210. */
export function parseRuleSet(value: unknown): RuleSet | undefined {
  if (value === undefined || value === null) return undefined;
  const parsed = shapes().ruleSet.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw errors.invalidRuleSet(`${issue?.path.join('.')}: ${issue?.message}`);
  }
  for (const rules of [
    parsed.data.migrationRules,
    parsed.data.domainRules,
    parsed.data.encodingRules,
  ])
    assertUnique(rules ?? []);
  return parsed.data;
}

function assertUnique(rules: readonly { readonly name: string }[]): void {
  const names = rules.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw errors.invalidRuleSet(`Found rule with duplicate name '${twice}'`);
}

/** What is prescribed for a subject's schemas. */
export interface ContractDefaults {
  readonly defaultMetadata?: Metadata | undefined;
  readonly overrideMetadata?: Metadata | undefined;
  readonly defaultRuleSet?: RuleSet | undefined;
  readonly overrideRuleSet?: RuleSet | undefined;
}

/** The given parts, else those of the version before, between the subject's defaults and overrides. */
export function mergedContract(
  given: Contract,
  previous: Contract,
  { defaultMetadata, overrideMetadata, defaultRuleSet, overrideRuleSet }: ContractDefaults,
): Contract {
  const metadata = given.metadata ?? previous.metadata;
  const ruleSet = given.ruleSet ?? previous.ruleSet;
  return {
    metadata: mergeMetadata(mergeMetadata(defaultMetadata, metadata), overrideMetadata),
    ruleSet: mergeRuleSets(mergeRuleSets(defaultRuleSet, ruleSet), overrideRuleSet),
  };
}

function mergeMetadata(
  before: Metadata | undefined,
  after: Metadata | undefined,
): Metadata | undefined {
  if (before === undefined || after === undefined) return after ?? before;
  return {
    tags: { ...before.tags, ...after.tags },
    properties: { ...before.properties, ...after.properties },
    sensitive: [...(before.sensitive ?? []), ...(after.sensitive ?? [])],
  };
}

function mergeRuleSets(
  before: RuleSet | undefined,
  after: RuleSet | undefined,
): RuleSet | undefined {
  if (before === undefined || after === undefined) return after ?? before;
  const merged = (kind: 'migrationRules' | 'domainRules' | 'encodingRules') => {
    const [old, own] = [before[kind] ?? [], after[kind] ?? []];
    const names = new Set(own.map(({ name }) => name));
    return [...old.filter(({ name }) => !names.has(name)), ...own];
  };
  return {
    migrationRules: merged('migrationRules'),
    domainRules: merged('domainRules'),
    encodingRules: merged('encodingRules'),
    enableAt: after.enableAt ?? before.enableAt,
  };
}

/** With the version that the schema is about to get, for those that carry it. */
export function withVersion(contract: Contract, version: number, asked: boolean): Contract {
  const properties = contract.metadata?.properties;
  if (!asked && properties?.[VERSION_PROPERTY] === undefined) return contract;
  return {
    ...contract,
    metadata: {
      ...contract.metadata,
      properties: { ...properties, [VERSION_PROPERTY]: String(version) },
    },
  };
}

/** Canonical text; '' when nothing is given. Order of names means nothing, order of rules does. */
export function contractText({ metadata, ruleSet }: Contract): string {
  const given = {
    ...(metadata === undefined ? {} : { metadata: sortedMetadata(metadata) }),
    ...(ruleSet === undefined ? {} : { ruleSet: filled(ruleSet) }),
  };
  return Object.keys(given).length === 0 ? '' : JSON.stringify(given);
}

export function parseContract(text: string): Contract {
  return text === '' ? {} : (JSON.parse(text) as Contract);
}

/** Equal, but for the version that one of them may carry. */
export function sameContract(a: string, b: string): boolean {
  return a === b || withoutVersion(a) === withoutVersion(b);
}

function withoutVersion(text: string): string {
  if (!text.includes(VERSION_PROPERTY)) return text;
  const contract = parseContract(text);
  const { [VERSION_PROPERTY]: _version, ...properties } = contract.metadata?.properties ?? {};
  const metadata = { ...contract.metadata, properties };
  const isEmpty =
    Object.keys(properties).length === 0 && Object.keys(sortedMetadata(metadata)).length === 0;
  return contractText({ ...contract, metadata: isEmpty ? undefined : metadata });
}

function sortedMetadata({ tags, properties, sensitive }: Metadata): object {
  const sorted = <T>(record: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
  return filled({
    tags: tags && Object.keys(tags).length > 0 ? sorted(tags) : undefined,
    properties: properties && Object.keys(properties).length > 0 ? sorted(properties) : undefined,
    sensitive: sensitive && sensitive.length > 0 ? [...new Set(sensitive)].sort() : undefined,
  });
}

/** Without what is null, undefined or an empty list. */
function filled(value: object): object {
  const isGiven = (one: unknown) =>
    one !== undefined && one !== null && !(Array.isArray(one) && one.length === 0);
  return Object.fromEntries(Object.entries(value).filter(([, one]) => isGiven(one)));
}
