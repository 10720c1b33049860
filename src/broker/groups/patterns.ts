// Topics as consumer groups see them: the directory of topics, and which of them match a pattern (KIP-848).
// A pattern is looked up against all topics once, and then against each topic that comes; groups share the result.
// The engine is RE2's (linear in the text, no backtracking), as in Kafka, so a pattern from outside can't stall us.
import { RE2JS } from 're2js';
import { FloeError } from '../../base/error.ts';
import type { TopicChange, TopicDirectory } from '../../metadata/topic-directory.ts';
import type { TopicView } from './consumer/topics.ts';

interface Pattern {
  readonly test: (topic: string) => boolean;
  names: readonly string[];
}

/** Longest pattern, and how many are kept at a time: the least used give way. */
const MAX_PATTERN_LENGTH = 1_000;
/** Steps of a compiled pattern: nested repetitions make a long one of a short text, and each costs per character. */
const MAX_PROGRAM_SIZE = 2_000;
const MAX_PATTERNS = 1_000;

export class PatternTopics implements TopicView {
  readonly #directory: TopicDirectory;
  readonly #patterns = new Map<string, Pattern>();
  readonly #stopListening: () => void;
  #version = 0;

  constructor(directory: TopicDirectory) {
    this.#directory = directory;
    this.#stopListening = directory.onChange((change) => this.#changed(change));
  }

  get version(): number {
    return this.#version;
  }

  partitionsOf(topic: string): readonly number[] | undefined {
    return this.#directory.byName(topic)?.partitions;
  }

  matching(pattern: string): readonly string[] {
    const known = this.#patterns.get(pattern);
    // Moved to the end: the first is the least used.
    this.#patterns.delete(pattern);
    const kept = known ?? this.#lookUp(pattern);
    this.#patterns.set(pattern, kept);
    if (this.#patterns.size > MAX_PATTERNS)
      this.#patterns.delete(this.#patterns.keys().next().value!);
    return kept.names;
  }

  stop(): void {
    this.#stopListening();
  }

  #lookUp(pattern: string): Pattern {
    const compiled = compile(pattern);
    const test = (topic: string) => compiled.testExact(topic);
    const names = this.#directory.all().map(({ name }) => name);
    return { test, names: names.filter(test) };
  }

  #changed(change: TopicChange): void {
    const { name } = change.topic;
    if (change.kind === 'changed') {
      // Configs change without a new partition.
      if (change.previous?.partitions.length !== change.topic.partitions.length) this.#version += 1;
      return;
    }
    this.#version += 1;
    for (const pattern of this.#patterns.values()) {
      if (change.kind === 'created' && pattern.test(name)) pattern.names = [...pattern.names, name];
      if (change.kind === 'deleted' && pattern.names.includes(name))
        pattern.names = pattern.names.filter((other) => other !== name);
    }
  }
}

/** Why a pattern can't be used, for people; undefined when it can. */
export function patternFault(pattern: string): string | undefined {
  try {
    compile(pattern);
    return undefined;
  } catch (caught) {
    return FloeError.from(caught).message;
  }
}

/** @throws FloeError `invalid` */
function compile(pattern: string): RE2JS {
  if (pattern.length > MAX_PATTERN_LENGTH)
    throw new FloeError('invalid', `it is longer than ${MAX_PATTERN_LENGTH} characters`);
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern);
  } catch (caught) {
    throw new FloeError('invalid', caught instanceof Error ? caught.message : String(caught));
  }
  if (compiled.programSize() > MAX_PROGRAM_SIZE)
    throw new FloeError('invalid', 'its repetitions make it too large');
  return compiled;
}
