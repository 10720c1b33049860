import { expect, it } from 'vitest';
import { FloeError } from '../base/error.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { kafkaCodeOf } from './failures.ts';

/** Codes on which every client tries again. */
const RETRIABLE: readonly number[] = [
  ErrorCode.KAFKA_STORAGE_ERROR,
  ErrorCode.REQUEST_TIMED_OUT,
  ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
];

it.each(['unavailable', 'timeout', 'exhausted', 'corrupt', 'cancelled', 'internal'] as const)(
  'L9: %s is answered with a retriable code',
  (code) => {
    expect(RETRIABLE).toContain(kafkaCodeOf(new FloeError(code, 'x')));
  },
);

it.each(['invalid', 'not-found', 'conflict', 'unauthorized', 'unsupported'] as const)(
  '%s is never UNKNOWN_SERVER_ERROR',
  (code) => {
    expect(kafkaCodeOf(new FloeError(code, 'x'))).toBeGreaterThan(0);
  },
);
