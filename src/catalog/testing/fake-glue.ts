// AWS Glue's Data Catalog in a process, over its real HTTP protocol (JSON 1.1): databases, tables, versions that an
// update must name, archives with their quota, pages, and faults on demand. Honest where it matters: an update with a
// version that isn't the table's is refused, one without a version is not. For tests only.
// Source: AWS Glue API reference.
import { type FastifyInstance, fastify } from 'fastify';

type Json = Record<string, unknown>;

interface FakeTable {
  readonly table: Json & { Name: string; VersionId: string };
  /** Versions kept by updates that didn't skip it. */
  readonly archived: number;
}

export type GlueFault =
  /** 400, nothing done. */
  | 'throttled'
  /** 400 of another writer, nothing done. */
  | 'concurrent'
  /** 500, nothing done. */
  | 'error-before'
  /** Done, then 500. */
  | 'error-after'
  /** Done, the connection breaks before the answer. */
  | 'lost'
  /** The first state that was ever answered. */
  | 'stale';

/** Versions of one table that Glue keeps by default quota are 100,000; here few, so that a test gets there. */
const VERSION_QUOTA = 50;
const PAGE = 50;

class GlueError extends Error {
  readonly type: string;
  readonly status: number;

  constructor(type: string, message: string, status = 400) {
    super(message);
    this.type = type;
    this.status = status;
  }
}

const missing = (what: string) => new GlueError('EntityNotFoundException', `${what} not found.`);

export class FakeGlue {
  readonly app: FastifyInstance;
  readonly databases = new Map<string, { readonly input: Json; tables: Map<string, FakeTable> }>();
  /** Operations asked for, in order. */
  readonly calls: string[] = [];
  readonly #faults: { readonly operation: string; readonly fault: GlueFault }[] = [];
  readonly #first = new Map<string, unknown>();
  /** Called before an update is looked at: what somebody else does meanwhile. */
  onUpdate: (() => void) | undefined;
  #holdNext: string | undefined;
  #release: (() => void) | undefined;

  /** The next call of `operation` waits for {@link release}. */
  hold(operation: string): void {
    this.#holdNext = operation;
  }

  get holding(): boolean {
    return this.#release !== undefined;
  }

  release(): void {
    this.#release?.();
    this.#release = undefined;
  }

  constructor() {
    this.app = fastify();
    this.app.removeAllContentTypeParsers();
    this.app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) =>
      done(null, JSON.parse(body as string)),
    );
    this.app.post('/', async (request, reply) => {
      const target = String(request.headers['x-amz-target']).replace(/^AWSGlue\./, '');
      const signed = request.headers.authorization?.startsWith('AWS4-HMAC-SHA256 ') === true;
      void reply.type('application/x-amz-json-1.1');
      try {
        if (target === this.#holdNext) {
          this.#holdNext = undefined;
          await new Promise<void>((resolve) => {
            this.#release = resolve;
          });
        }
        if (!signed) throw new GlueError('UnrecognizedClientException', 'not signed');
        const answer = this.#answer(target, request.body as Json);
        if (answer === LOST) {
          request.raw.socket.destroy();
          return reply.hijack();
        }
        return JSON.stringify(answer);
      } catch (caught) {
        if (!(caught instanceof GlueError)) throw caught;
        return reply
          .code(caught.status)
          .send(JSON.stringify({ __type: caught.type, Message: caught.message }));
      }
    });
  }

  async listen(): Promise<string> {
    return this.app.listen({ host: '127.0.0.1', port: 0 });
  }

  /** The next call of `operation` fails like that. */
  fail(operation: string, fault: GlueFault): void {
    this.#faults.push({ operation, fault });
  }

  tableOf(database: string, name: string): FakeTable | undefined {
    return this.databases.get(database)?.tables.get(name);
  }

  #answer(operation: string, input: Json): unknown {
    this.calls.push(operation);
    if (operation === 'UpdateTable') this.onUpdate?.();
    const at = this.#faults.findIndex((one) => one.operation === operation);
    const fault = at < 0 ? undefined : this.#faults.splice(at, 1)[0]!.fault;
    const key = `${operation} ${JSON.stringify(input)}`;
    switch (fault) {
      case 'throttled':
        throw new GlueError('ThrottlingException', 'Rate exceeded');
      case 'concurrent':
        throw new GlueError(
          'ConcurrentModificationException',
          'Update table failed due to concurrent modifications.',
        );
      case 'error-before':
        throw new GlueError('InternalServiceException', 'try later', 500);
      case 'stale':
        return this.#first.get(key);
      default:
    }
    const answer = this.#do(operation, input);
    if (!this.#first.has(key)) this.#first.set(key, structuredClone(answer));
    if (fault === 'error-after') throw new GlueError('InternalServiceException', 'try later', 500);
    return fault === 'lost' ? LOST : answer;
  }

  #do(operation: string, input: Json): unknown {
    switch (operation) {
      case 'CreateDatabase':
        return this.#createDatabase(input['DatabaseInput'] as Json);
      case 'GetDatabase':
        return { Database: this.#database(String(input['Name'])).input };
      case 'GetDatabases':
        return page(
          'DatabaseList',
          [...this.databases.values()].map(({ input: one }) => one),
          input,
        );
      case 'CreateTable':
        return this.#createTable(input);
      case 'GetTable':
        return { Table: this.#table(input).table };
      case 'GetTables': {
        const { tables } = this.#database(String(input['DatabaseName']));
        return page(
          'TableList',
          sorted(tables).map(({ table }) => table),
          input,
        );
      }
      case 'UpdateTable':
        return this.#updateTable(input);
      case 'DeleteTable': {
        const { tables } = this.#database(String(input['DatabaseName']));
        if (!tables.delete(String(input['Name']))) throw missing('Table');
        return {};
      }
      default:
        throw new GlueError('UnknownOperationException', operation);
    }
  }

  #createDatabase(input: Json): unknown {
    const name = checkedName(input['Name']);
    if (this.databases.has(name))
      throw new GlueError('AlreadyExistsException', 'Database already exists.');
    this.databases.set(name, { input, tables: new Map() });
    return {};
  }

  #createTable(input: Json): unknown {
    const { tables } = this.#database(String(input['DatabaseName']));
    const wanted = input['TableInput'] as Json;
    const name = checkedName(wanted['Name']);
    if (tables.has(name)) throw new GlueError('AlreadyExistsException', 'Table already exists.');
    tables.set(name, { table: { ...wanted, Name: name, VersionId: '0' }, archived: 0 });
    return {};
  }

  #updateTable(input: Json): unknown {
    const wanted = input['TableInput'] as Json & { Name: string };
    const { tables } = this.#database(String(input['DatabaseName']));
    const present = tables.get(wanted.Name);
    if (present === undefined) throw missing('Table');
    const { VersionId: version } = present.table;
    if (input['VersionId'] !== undefined && input['VersionId'] !== version) {
      throw new GlueError(
        'ConcurrentModificationException',
        'Update table failed due to concurrent modifications.',
      );
    }
    const archived = present.archived + (input['SkipArchive'] === true ? 0 : 1);
    if (archived > VERSION_QUOTA)
      throw new GlueError(
        'ResourceNumberLimitExceededException',
        'Number of TABLE_VERSION exceeded.',
      );
    tables.set(wanted.Name, {
      table: { ...wanted, VersionId: String(Number(version) + 1) },
      archived,
    });
    return {};
  }

  #table(input: Json): FakeTable {
    const found = this.#database(String(input['DatabaseName'])).tables.get(String(input['Name']));
    if (found === undefined) throw missing('Table');
    return found;
  }

  #database(name: string) {
    const found = this.databases.get(name);
    if (found === undefined) throw missing('Database');
    return found;
  }
}

const LOST = Symbol('the answer is lost');

/** Glue folds names to lower case. */
function checkedName(value: unknown): string {
  const name = String(value).toLowerCase();
  if (name.length < 1 || name.length > 255) throw new GlueError('InvalidInputException', 'name');
  return name;
}

const sorted = (tables: ReadonlyMap<string, FakeTable>) =>
  [...tables.values()].sort((a, b) => (a.table.Name < b.table.Name ? -1 : 1));

function page(key: string, items: readonly unknown[], { NextToken: token }: Json): Json {
  const from = Number(token ?? 0);
  const next = from + PAGE < items.length ? { NextToken: String(from + PAGE) } : {};
  return { [key]: items.slice(from, from + PAGE), ...next };
}
