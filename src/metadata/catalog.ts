// The catalog's pointers: namespaces with properties, and for each table or view the metadata file that is its present
// state. What is in those files is the catalog's business (catalog/); here a pointer only moves when it is where the
// mover saw it. A namespace is its levels joined by U+001F, which no level may contain. Tables and views share names.

import { FloeError } from '../base/error.ts';

/** Levels joined by {@link LEVEL_SEPARATOR}; '' is the root, which holds namespaces but no tables. */
export type NamespaceKey = string;

export const LEVEL_SEPARATOR = '\u001f';

export type PointerKind = 'table' | 'view';

/** A table or view by its name. Two kinds never share a name within a namespace. */
export interface PointerName {
  readonly kind: PointerKind;
  readonly namespace: NamespaceKey;
  readonly name: string;
}

export interface Pointer extends PointerName {
  /** Absolute URI of the current metadata file. */
  readonly metadataLocation: string;
}

export interface PointerMove extends PointerName {
  /** Where the pointer was seen; undefined for a table or view that doesn't exist yet. */
  readonly from: string | undefined;
  readonly to: string;
}

/** A page: entries after `after` in ascending order of bytes, at most `limit`. */
export interface PageRequest {
  readonly after?: string;
  readonly limit?: number;
}

export interface PropertyChanges {
  readonly updates: Readonly<Record<string, string>>;
  readonly removals: readonly string[];
}

/**
 * Errors carry `details.thing` (`namespace`, `table` or `view`: what is missing, or what has the name already).
 * `not-found`: it isn't there. `conflict`: it is there already, isn't empty (`details.reason` = `not-empty`), or a
 * pointer has moved (`details.reason` = `moved`).
 */
export interface CatalogMetadata {
  /** The parent must exist. */
  createNamespace(
    namespace: NamespaceKey,
    properties: Readonly<Record<string, string>>,
  ): Promise<void>;
  /** Undefined when there is none. */
  namespaceProperties(
    namespace: NamespaceKey,
  ): Promise<Readonly<Record<string, string>> | undefined>;
  /** Children of `parent`, one level down. */
  listNamespaces(parent: NamespaceKey, page?: PageRequest): Promise<readonly NamespaceKey[]>;
  /** Returns the removals that weren't there. */
  alterNamespace(namespace: NamespaceKey, changes: PropertyChanges): Promise<readonly string[]>;
  /** Refused while it holds tables, views or namespaces. */
  dropNamespace(namespace: NamespaceKey): Promise<void>;
  /** What has the name, of whichever kind; undefined when nothing has. */
  pointer(namespace: NamespaceKey, name: string): Promise<Pointer | undefined>;
  /** Names of one kind. */
  listPointers(
    kind: PointerKind,
    namespace: NamespaceKey,
    page?: PageRequest,
  ): Promise<readonly string[]>;
  /** Moves all pointers or none, in one transaction. */
  movePointers(moves: readonly PointerMove[]): Promise<void>;
  /** The kind stays: `to` is of the same. */
  renamePointer(from: PointerName, to: PointerName): Promise<void>;
  /** Returns what was dropped. */
  dropPointer(name: PointerName): Promise<Pointer>;
  /** A secret of this catalog: `fresh` becomes it if there is none yet. Returns the one that holds. */
  secret(name: string, fresh: string): Promise<string>;
}

// Texts as Java clients and their tests know them.

const KINDS: Readonly<Record<PointerKind, string>> = { table: 'Table', view: 'View' };
const shown = (namespace: NamespaceKey) => namespace.split(LEVEL_SEPARATOR).join('.');
const shownName = ({ namespace, name }: PointerName) => `${shown(namespace)}.${name}`;

/** @returns the error of a namespace that isn't there. */
export const missingNamespace = (namespace: NamespaceKey): FloeError =>
  new FloeError('not-found', `Namespace does not exist: ${shown(namespace)}`, {
    details: { thing: 'namespace' },
  });

/** @returns the error of a namespace that is there already. */
export const namespaceTaken = (namespace: NamespaceKey): FloeError =>
  new FloeError('conflict', `Namespace already exists: ${shown(namespace)}`, {
    details: { thing: 'namespace' },
  });

/** @returns the error of a namespace that can't be dropped yet. */
export const namespaceNotEmpty = (namespace: NamespaceKey): FloeError =>
  new FloeError(
    'conflict',
    `Namespace ${shown(namespace)} is not empty: drop its tables, views and namespaces first`,
    { details: { thing: 'namespace', reason: 'not-empty' } },
  );

/** @returns the error of a table or view that isn't there. */
export const missingPointer = (pointer: PointerName): FloeError =>
  new FloeError('not-found', `${KINDS[pointer.kind]} does not exist: ${shownName(pointer)}`, {
    details: { thing: pointer.kind },
  });

/** @returns the error of a name that something has already. */
export const pointerTaken = (wanted: PointerName, present: Pointer): FloeError =>
  new FloeError(
    'conflict',
    wanted.kind === present.kind
      ? `${KINDS[present.kind]} already exists: ${shownName(present)}`
      : `${KINDS[present.kind]} with same name already exists: ${shownName(present)}`,
    { details: { thing: present.kind } },
  );

/** @returns the error of a commit upon a state that is no longer the present one. */
export const pointerMoved = (move: PointerMove): FloeError =>
  new FloeError(
    'conflict',
    `Cannot commit: ${move.kind} "${shownName(move)}" has changed meanwhile: reload it and decide afresh`,
    { details: { thing: move.kind, reason: 'moved' } },
  );

/** @returns the error of a rename to a name that something has. */
export const renameTaken = (from: PointerName, to: PointerName, present: Pointer): FloeError =>
  new FloeError(
    'conflict',
    `Cannot rename ${shownName(from)} to ${shownName(to)}. ${KINDS[present.kind]} already exists`,
    { details: { thing: present.kind } },
  );
