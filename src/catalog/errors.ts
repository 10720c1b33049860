// Errors of the catalog: FloeErrors whose `details.type` is the exception name that REST clients know.
// Source: Iceberg REST OpenAPI, IcebergErrorResponse and its examples.
import { type ErrorCode, FloeError } from '../base/error.ts';
import type { PointerKind } from '../metadata/catalog.ts';
import type { TableIdentifier } from './catalog.ts';
import { shownTable } from './names.ts';

export type ExceptionType =
  | 'NoSuchNamespaceException'
  | 'NoSuchTableException'
  | 'NoSuchViewException'
  | 'AlreadyExistsException'
  | 'NamespaceNotEmptyException'
  | 'CommitFailedException'
  | 'CommitStateUnknownException'
  | 'BadRequestException'
  | 'IllegalArgumentException'
  | 'UnprocessableEntityException'
  | 'UnsupportedOperationException'
  | 'NotAuthorizedException'
  | 'ForbiddenException'
  | 'ServiceUnavailableException'
  | 'InternalServerError'
  | 'NotFoundException';

const STATUS: Readonly<Record<ExceptionType, number>> = {
  BadRequestException: 400,
  IllegalArgumentException: 400,
  NotAuthorizedException: 401,
  ForbiddenException: 403,
  NoSuchNamespaceException: 404,
  NoSuchTableException: 404,
  NoSuchViewException: 404,
  NotFoundException: 404,
  UnsupportedOperationException: 406,
  AlreadyExistsException: 409,
  NamespaceNotEmptyException: 409,
  CommitFailedException: 409,
  UnprocessableEntityException: 422,
  InternalServerError: 500,
  CommitStateUnknownException: 500,
  ServiceUnavailableException: 503,
};

const BY_CODE: Readonly<Record<ErrorCode, ExceptionType>> = {
  invalid: 'BadRequestException',
  'not-found': 'NotFoundException',
  conflict: 'CommitFailedException',
  unavailable: 'ServiceUnavailableException',
  timeout: 'CommitStateUnknownException',
  exhausted: 'ServiceUnavailableException',
  corrupt: 'InternalServerError',
  unauthorized: 'ForbiddenException',
  unsupported: 'BadRequestException',
  cancelled: 'ServiceUnavailableException',
  internal: 'InternalServerError',
};

export interface CatalogErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: ExceptionType;
    readonly code: number;
  };
}

/** What a client gets for anything that was thrown. */
export function errorBody(caught: unknown): CatalogErrorBody {
  const error = FloeError.from(caught);
  const type = exceptionType(error);
  return { error: { message: error.message, type, code: STATUS[type] } };
}

function exceptionType(error: FloeError): ExceptionType {
  const { type, thing, reason } = error.details;
  if (typeof type === 'string' && Object.hasOwn(STATUS, type)) return type as ExceptionType;
  // Errors of the pointers (metadata/catalog.ts) say which thing they are about.
  if (error.code === 'not-found' && thing === 'namespace') return 'NoSuchNamespaceException';
  if (error.code === 'not-found' && thing === 'table') return 'NoSuchTableException';
  if (error.code === 'not-found' && thing === 'view') return 'NoSuchViewException';
  if (error.code === 'conflict' && thing !== undefined) {
    if (reason === 'not-empty') return 'NamespaceNotEmptyException';
    return reason === 'moved' ? 'CommitFailedException' : 'AlreadyExistsException';
  }
  return BY_CODE[error.code];
}

/** An error with the exception name that REST clients act on. */
export function catalogError(code: ErrorCode, type: ExceptionType, message: string): FloeError {
  return new FloeError(code, message, { details: { type } });
}

/** What a create meets when the name is gone already; the texts are those that Java clients know. */
export function nameTaken(
  wanted: PointerKind,
  present: PointerKind,
  identifier: TableIdentifier,
): FloeError {
  const thing = present === 'table' ? 'Table' : 'View';
  const same = wanted === present ? '' : ' with same name';
  return catalogError(
    'conflict',
    'AlreadyExistsException',
    `${thing}${same} already exists: ${shownTable(identifier)}`,
  );
}

export function noNamespace(namespace: readonly string[]): FloeError {
  return catalogError(
    'not-found',
    'NoSuchNamespaceException',
    `Namespace does not exist: ${namespace.join('.')}`,
  );
}
