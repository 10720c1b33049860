// Subjects and their contexts: `:.ctx:subject` is a subject of context `.ctx`, any other text one of the default context
// `.`. Each context is a registry of its own: ids, subjects and settings. Names are stored in their normal form.

export const DEFAULT_CONTEXT = '.';
/** A place for settings above all contexts; nothing is registered in it. */
export const GLOBAL_CONTEXT = '.__GLOBAL';
/** In prefixes: subjects of all contexts. */
const ALL_CONTEXTS = ':*:';

export interface QualifiedSubject {
  readonly context: string;
  /** Without its context; '' means the context itself. */
  readonly subject: string;
}

/** `text` as clients write it. A context may lack its closing colon. */
export function parseSubject(text: string): QualifiedSubject {
  if (!text.startsWith(':.')) return { context: DEFAULT_CONTEXT, subject: text };
  const end = text.indexOf(':', 2);
  return end < 0
    ? { context: text.slice(1), subject: '' }
    : { context: text.slice(1, end), subject: text.slice(end + 1) };
}

/** The normal form: the default context is not written. */
export function subjectName({ context, subject }: QualifiedSubject): string {
  return context === DEFAULT_CONTEXT ? subject : `:${context}:${subject}`;
}

/** What clients write → the normal form. */
export function normalSubject(text: string): string {
  return subjectName(parseSubject(text));
}

export function contextOf(subject: string): string {
  return parseSubject(subject).context;
}

/** What a reference's subject means in a schema of `context`: the same context, unless it names another. */
export function subjectWithin(context: string, subject: string): string {
  const parsed = parseSubject(subject);
  const isBare = parsed.context === DEFAULT_CONTEXT;
  return subjectName(isBare ? { context, subject: parsed.subject } : parsed);
}

/** Subjects that a prefix as clients write it covers: of one context, or (`undefined`) of all. */
export function parsePrefix(
  text: string,
): QualifiedSubject | { context: undefined; subject: string } {
  return text.startsWith(ALL_CONTEXTS)
    ? { context: undefined, subject: text.slice(ALL_CONTEXTS.length) }
    : parseSubject(text);
}

/** Names of settings that hold for a subject ('' the whole registry), the nearest first. */
export function settingScopes(subject: string): readonly string[] {
  const global = subjectName({ context: GLOBAL_CONTEXT, subject: '' });
  const { context } = parseSubject(subject);
  const outer =
    context === DEFAULT_CONTEXT
      ? ['', global]
      : [subjectName({ context, subject: '' }), global, ''];
  return [...new Set([subject, ...outer])];
}
