// The registry's documented errors: Confluent's codes, whose first three digits are the HTTP status.
// Carried by FloeError in `details.registryCode`; http/reply.ts turns them into responses.
import { type ErrorCode, FloeError } from '../base/error.ts';
import type { SchemaReference } from './schema-source.ts';

function registryError(kind: ErrorCode, registryCode: number, message: string): FloeError {
  return new FloeError(kind, message, { details: { registryCode } });
}

/** One function per error, so that code and sentence stand together. */
export const errors = {
  subjectNotFound: (subject: string) =>
    registryError('not-found', 40401, `Subject '${subject}' not found.`),
  versionNotFound: (version: number | string) =>
    registryError('not-found', 40402, `Version ${version} not found.`),
  schemaNotFound: (id?: number | string) =>
    registryError(
      'not-found',
      40403,
      id === undefined ? 'Schema not found' : `Schema ${id} not found`,
    ),
  subjectSoftDeleted: (subject: string) =>
    registryError(
      'not-found',
      40404,
      `Subject '${subject}' was soft deleted. Set permanent=true to delete permanently`,
    ),
  subjectNotSoftDeleted: (subject: string) =>
    registryError(
      'not-found',
      40405,
      `Subject '${subject}' was not deleted first before being permanently deleted`,
    ),
  versionSoftDeleted: (subject: string, version: number) =>
    registryError(
      'not-found',
      40406,
      `Subject '${subject}' Version ${version} was soft deleted. Set permanent=true to delete permanently`,
    ),
  versionNotSoftDeleted: (subject: string, version: number) =>
    registryError(
      'not-found',
      40407,
      `Subject '${subject}' Version ${version} was not deleted first before being permanently deleted`,
    ),
  noSubjectCompatibility: (subject: string) =>
    registryError(
      'not-found',
      40408,
      `Subject '${subject}' does not have subject-level compatibility configured`,
    ),
  noSubjectMode: (subject: string) =>
    registryError(
      'not-found',
      40409,
      `Subject '${subject}' does not have subject-level mode configured`,
    ),
  incompatible: (subject: string, messages: readonly string[]) =>
    registryError(
      'conflict',
      409,
      `Schema being registered is incompatible with an earlier schema for subject "${subject}", details: [${messages.join(', ')}]`,
    ),
  invalidSchema: (type: string, reason: string) =>
    registryError('invalid', 42201, `Invalid schema of type ${type}, details: ${reason}`),
  invalidVersion: (version: string) =>
    registryError(
      'invalid',
      42202,
      `The specified version '${version}' is not a valid version id. Allowed values are between [1, 2^31-1] and the string "latest"`,
    ),
  invalidCompatibility: () =>
    registryError(
      'invalid',
      42203,
      'Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, forward_transitive, and full_transitive',
    ),
  invalidMode: () =>
    registryError(
      'invalid',
      42204,
      'Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and FORWARD',
    ),
  notPermitted: (message: string) => registryError('invalid', 42205, message),
  referenceExists: (subject: string, version: number | string) =>
    registryError(
      'invalid',
      42206,
      `One or more references exist to the schema {subject=${subject},version=${version}}.`,
    ),
  invalidSubject: (subject: string, reason: string) =>
    registryError('invalid', 42208, `The specified subject '${subject}' is not valid: ${reason}`),
  invalidRuleSet: (reason: string) =>
    registryError('invalid', 42210, `Invalid rule set: ${reason}`),
  schemaTooLarge: (message: string) => registryError('exhausted', 42209, message),
  invalidRequest: (message: string) => registryError('invalid', 422, message),
  missingReference: ({ subject, version }: SchemaReference) =>
    `no schema reference found for subject "${subject}" and version ${version}`,
};
