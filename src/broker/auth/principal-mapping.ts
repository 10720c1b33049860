// From the subject of a client's certificate to a user name: ssl.principal.mapping.rules, as in Kafka (KIP-371).
// Pure. Not for: whether the certificate is to be trusted (server.ts).
import { FloeError } from '../../base/error.ts';

/** One rule; undefined when it doesn't fit the subject. */
type Rule = (subject: string) => string | undefined;

const RULE = /\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)\/((?:\\.|[^\\/])*)\/([LU]?))\s*(?:,|$)/y;

/** From a subject (RFC 2253, e.g. `CN=alice,O=Floe`) to a name. @throws FloeError `invalid` for a malformed rule. */
export function parseMappingRules(text: string): (subject: string) => string | undefined {
  const rules: Rule[] = [];
  RULE.lastIndex = 0;
  while (RULE.lastIndex < text.length) {
    const from = RULE.lastIndex;
    const match = RULE.exec(text);
    if (match === null) {
      throw new FloeError(
        'invalid',
        `ssl.principal.mapping.rules: "${text.slice(from)}" is neither DEFAULT nor RULE:pattern/replacement/[LU]`,
      );
    }
    rules.push(match[1] === undefined ? rewriting(match) : (subject) => subject);
  }
  return (subject) => {
    for (const rule of rules) {
      const name = rule(subject);
      if (name !== undefined) return name;
    }
    return undefined;
  };
}

function rewriting(match: RegExpExecArray): Rule {
  const [, , pattern, replacement, letters] = match as unknown as string[];
  let whole: RegExp;
  try {
    whole = new RegExp(`^(?:${pattern})$`, 's');
  } catch (caught) {
    throw new FloeError('invalid', `ssl.principal.mapping.rules: ${(caught as Error).message}`);
  }
  return (subject) => {
    if (!whole.test(subject)) return undefined;
    const name = subject.replace(whole, replacement!);
    if (letters === 'L') return name.toLowerCase();
    return letters === 'U' ? name.toUpperCase() : name;
  };
}

/** Node's form of a distinguished name, a line per part in the certificate's order, as RFC 2253 has it: last first. */
export function subjectName(lines: string): string {
  return lines.split('\n').toReversed().join(',');
}
