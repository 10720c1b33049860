// Who sends an HTTP request, and whether it may: users and passwords (Basic) or tokens (Bearer) as on a SASL listener,
// certificates as on an SSL one, and the same ACLs. Each face says what its routes ask for (http-rules.ts) and how it
// words a refusal. Not for: what ACLs decide (broker/auth/), TLS itself (http.ts).
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import {
  Access,
  HTTP_LISTENER,
  type ListenerAuth,
  type Principal,
  type Security,
  subjectName,
  usesSasl,
} from '../broker/auth/index.ts';
import type { CatalogTokens, TokenAuthority } from '../catalog/index.ts';
import type { TableTopics } from '../table-topic/index.ts';
import {
  catalogRule,
  type HttpRule,
  namedSubject,
  operatorRule,
  registryRule,
} from './http-rules.ts';

export interface HttpAuthOptions {
  readonly security: Security;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Tokens that the catalog issues, taken on every HTTP face. */
  readonly tokens: CatalogTokens;
}

export interface ProtectedFace {
  /** What a request asks for. */
  rule(request: FastifyRequest): HttpRule | Promise<HttpRule>;
  /** The body of a refusal in the face's own form. */
  refusal(status: RefusalStatus, message: string): object;
  /** Status for a token whose time is up; 401 unless the face has one of its own. */
  readonly expired?: 419;
}

/** 401: who are you? 403: you may not. 419: your token was good once. */
export type RefusalStatus = 401 | 403 | 419;

/** Longest Authorization header that is looked at: tokens with many claims fit. */
const MAX_HEADER_BYTES = 16 * 1024;

export class HttpAuth {
  readonly #options: HttpAuthOptions;
  readonly #auth: ListenerAuth;
  /** What each request under way may do. */
  readonly #access = new WeakMap<IncomingMessage, Access>();

  constructor(options: HttpAuthOptions) {
    this.#options = options;
    this.#auth = options.security.listeners.get(HTTP_LISTENER)!.auth;
  }

  /** Of the catalog; for its token endpoint. */
  get tokens(): CatalogTokens {
    return this.#options.tokens;
  }

  /** What the sender of a request may do. */
  accessOf(request: IncomingMessage): Access {
    return this.#access.get(request) ?? this.#anonymous(request);
  }

  /** Whether the sender may read a table: of these topics, all of them, or of none. */
  mayRead(request: IncomingMessage, topics: readonly string[]): boolean {
    const access = this.accessOf(request);
    if (topics.length === 0) return access.allows('describe', 'cluster');
    return topics.every((topic) => access.allows('read', 'topic', topic));
  }

  /** Lets through `app` only what may pass. Before its routes are ready. */
  protect(app: FastifyInstance, face: ProtectedFace): void {
    app.addHook('onRequest', async (request, reply) => {
      const rule = await face.rule(request);
      if (rule === 'open') return;
      const access = await this.#authenticate(request, reply, face);
      if (access === undefined || reply.sent) return reply;
      this.#access.set(request.raw, access);
      if (rule === 'known' || rule.every((ask) => access.allows(...ask))) return;
      const [operation, type, name] = rule.find((ask) => !access.allows(...ask))!;
      const what = name === undefined ? `the ${type}` : `${type} "${name}"`;
      const message = `${operation} on ${what} is not allowed to ${nameOf(access)}`;
      return reply.code(403).send(face.refusal(403, message));
    });
  }

  /** What the sender may do; undefined when it was refused. */
  async #authenticate(
    request: FastifyRequest,
    reply: FastifyReply,
    face: ProtectedFace,
  ): Promise<Access | undefined> {
    try {
      if (!usesSasl(this.#auth.protocol)) return this.#anonymous(request.raw);
      const principal = await this.#principal(request.headers.authorization);
      return this.#accessFor(principal, request.raw);
    } catch (caught) {
      const error = FloeError.from(caught);
      if (error.code !== 'unauthorized') throw caught;
      const { clock, logger } = this.#options;
      logger.info({ peer: request.ip, reason: error.message }, 'HTTP authentication failed');
      if (request.headers.authorization !== undefined) await clock.sleep(this.#auth.failureDelayMs);
      void reply.header('www-authenticate', ['Basic realm="floe", charset="UTF-8"', 'Bearer']);
      const status = error.details['expired'] === true ? (face.expired ?? 401) : 401;
      await reply.code(status).send(face.refusal(status, error.message));
      return undefined;
    }
  }

  async #principal(header: string | undefined): Promise<Principal> {
    const [, scheme, credentials] = /^(\S+) +(\S+)$/.exec(header?.trim() ?? '') ?? [];
    if (scheme === undefined || credentials === undefined || header!.length > MAX_HEADER_BYTES) {
      throw new FloeError('unauthorized', 'authenticate by user and password, or by a token');
    }
    const mechanism = scheme.toLowerCase();
    try {
      const name = await this.#userOf(mechanism, credentials);
      this.#count(mechanism, 'success');
      return { type: 'User', name };
    } catch (caught) {
      this.#count(mechanism, 'failure');
      throw caught;
    }
  }

  /** Checks passwords and tokens for the catalog's token endpoint; undefined where nobody authenticates. */
  authority(): TokenAuthority | undefined {
    if (!usesSasl(this.#auth.protocol)) return undefined;
    return {
      login: (user, password) => this.#judged('basic', () => this.#withPassword(user, password)),
      userOfToken: (token) => this.#judged('bearer', () => this.#userOf('bearer', token)),
    };
  }

  /** Counts the outcome; a failure takes as long as on every other listener. */
  async #judged(scheme: string, check: () => Promise<string>): Promise<string> {
    try {
      const user = await check();
      this.#count(scheme, 'success');
      return user;
    } catch (caught) {
      this.#count(scheme, 'failure');
      await this.#options.clock.sleep(this.#auth.failureDelayMs);
      throw caught;
    }
  }

  async #userOf(scheme: string, credentials: string): Promise<string> {
    const { security, tokens } = this.#options;
    if (scheme === 'bearer') {
      return tokens.isOurs(credentials)
        ? tokens.verify(credentials)
        : (await security.verifyToken(credentials)).user;
    }
    if (scheme !== 'basic') {
      throw new FloeError('unauthorized', 'authenticate by Basic or Bearer');
    }
    const text = Buffer.from(credentials, 'base64').toString('utf8');
    const colon = text.indexOf(':');
    return this.#withPassword(text.slice(0, Math.max(colon, 0)), text.slice(colon + 1));
  }

  async #withPassword(user: string, password: string): Promise<string> {
    if (user !== '' && (await this.#options.security.users.verify(user, password))) return user;
    throw new FloeError('unauthorized', 'wrong user or password');
  }

  #anonymous(request: IncomingMessage): Access {
    const certificate = (request.socket as Partial<TLSSocket>).getPeerX509Certificate?.();
    if (certificate !== undefined && !(request.socket as TLSSocket).authorized) {
      throw new FloeError('unauthorized', 'the certificate of the client is not trusted');
    }
    const subject = certificate === undefined ? undefined : subjectName(certificate.subject);
    return this.#accessFor(this.#auth.principal(subject), request);
  }

  #accessFor(principal: Principal, request: IncomingMessage): Access {
    const host = (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
    return new Access(this.#options.security.authorizer, { principal, host });
  }

  #count(scheme: string, outcome: 'success' | 'failure'): void {
    const mechanism = scheme === 'basic' || scheme === 'bearer' ? scheme : 'unsupported';
    const help = 'HTTP authentications by scheme and outcome';
    this.#options.metrics.count('floe_http_authentications_total', help, { mechanism, outcome });
  }
}

const nameOf = ({ who }: Access) => `${who.principal.type}:${who.principal.name}`;

export interface Faces {
  readonly registry: FastifyInstance;
  readonly catalog: FastifyInstance;
  readonly operator: FastifyInstance;
}

const CATALOG_TYPES: Readonly<Record<RefusalStatus, string>> = {
  401: 'NotAuthorizedException',
  403: 'ForbiddenException',
  419: 'AuthenticationTimeoutException',
};

/** What faces know about the names in their paths. */
export interface FaceNames {
  readonly tables: TableTopics;
  /** The subject that an alias stands for, or the subject itself. */
  subjectOf(name: string): Promise<string>;
}

/** Protects all faces, each with refusals in its own form. */
export function protectFaces(auth: HttpAuth, faces: Faces, { tables, subjectOf }: FaceNames): void {
  auth.protect(faces.registry, {
    rule: async (request) => {
      const named = namedSubject(request);
      if (named === undefined) return registryRule(request);
      // Whoever may use an alias must be allowed what it stands for.
      return registryRule(request, named.aliased ? await subjectOf(named.subject) : named.subject);
    },
    refusal: (status, message) => ({ error_code: status === 403 ? 40301 : 40101, message }),
  });
  auth.protect(faces.catalog, {
    rule: (request) => catalogRule(request, (table) => tables.topicsOf(table)),
    refusal: (status, message) => ({
      error: { message, type: CATALOG_TYPES[status], code: status },
    }),
    expired: 419,
  });
  auth.protect(faces.operator, {
    rule: operatorRule,
    refusal: (_status, message) => ({ error: { code: 'unauthorized', message } }),
  });
}
