// Which clients a client metrics subscription is for (KIP-714): patterns over what is known of a client, all of which must
// match as a whole. Patterns are RE2's, so that none takes long. Not for: what is then pushed (subscriptions.ts).
import { RE2JS } from 're2js';
import { FloeError } from '../../base/error.ts';

/** What of a client can be matched. */
export const MATCHED = [
  'client_instance_id',
  'client_id',
  'client_software_name',
  'client_software_version',
  'client_source_address',
  'client_source_port',
] as const;

export type MatchedFact = (typeof MATCHED)[number];

export type ClientFacts = Readonly<Record<MatchedFact, string>>;

/** A pattern per fact; none: every client. */
export type ClientMatch = ReadonlyMap<MatchedFact, RE2JS>;

const MAX_PATTERN = 1_024;

/** `name=pattern, …`. @throws FloeError `invalid` naming the item. */
export function parseMatch(text: string): ClientMatch {
  const match = new Map<MatchedFact, RE2JS>();
  for (const item of text.split(',')) {
    if (item.trim() === '') continue;
    const [name, pattern, ...rest] = item.split('=').map((part) => part.trim());
    const fact = MATCHED.find((candidate) => candidate === name);
    if (fact === undefined || !pattern || rest.length > 0 || pattern.length > MAX_PATTERN) {
      const wanted = `name=pattern with a name of ${MATCHED.join(', ')}`;
      throw new FloeError('invalid', `illegal client match "${item.trim()}": it is not ${wanted}`);
    }
    match.set(fact, compile(pattern));
  }
  return match;
}

function compile(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern);
  } catch (caught) {
    throw new FloeError('invalid', `illegal client match: "${pattern}" is no pattern`, {
      cause: caught,
    });
  }
}

export function isMatch(match: ClientMatch, facts: ClientFacts): boolean {
  for (const [fact, pattern] of match) if (!pattern.matches(facts[fact])) return false;
  return true;
}
